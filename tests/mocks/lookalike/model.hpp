// SPDX-License-Identifier: Apache-2.0
// A model of the look-alike, and the graph of one forward pass, with the truth about every node planted in it.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "lookalike/graph.hpp"
#include "lookalike/llama.h"

struct llama_vocab {
    std::int32_t tokens = 48;
};

struct llama_model {
    std::string text;
    std::int64_t layers = 2, width = 64, heads = 4, kv_heads = 2, inner = 160, experts = 4, used_experts = 2;
    bool moe = false, bias = false, qk_norm = false, flash = true;
    double scale = 1;
    llama_vocab vocab;
    std::int64_t head() const { return width / heads; }
};

namespace lookalike {

// One forward pass of `tokens` tokens of which `outputs` give logits, over a cache whose views are `kv_padded` long.
class Graph {
  public:
    explicit Graph(const llama_model& model);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    // True: it is another graph than before, at the same addresses.
    bool build(std::int64_t tokens, std::int64_t outputs, std::int64_t kv_padded);
    // What the next run is told: where to note, and how much of the cache it reads; 0: not said.
    void prepare(Step* step, std::int64_t kv_length);
    ggml_cgraph* get() { return graph_; }
    int working_nodes() const { return working_; }

  private:
    ggml_tensor* weight(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t count = 1);
    ggml_tensor* node(const std::string& name, ggml_op op, const char* brick, double ns,
                      std::vector<ggml_tensor*> sources, ggml_type type, std::int64_t ne0, std::int64_t ne1,
                      std::int64_t ne2 = 1);
    ggml_tensor* like(const std::string& name, ggml_op op, const char* brick, double ns,
                      std::vector<ggml_tensor*> sources);
    ggml_tensor* view(const std::string& name, ggml_op op, ggml_tensor* of);
    ggml_tensor* product(const std::string& name, const char* brick, double ns, ggml_tensor* weight,
                         ggml_tensor* input);
    ggml_tensor* norm(const std::string& name, const char* brick, ggml_tensor* input, const std::string& weight);
    ggml_tensor* projected(const std::string& name, const std::string& weight, ggml_tensor* input, std::int64_t out,
                           bool rotated);
    ggml_tensor* attention(ggml_tensor* input);
    ggml_tensor* feed_forward(ggml_tensor* input);
    ggml_tensor* experts(ggml_tensor* input);
    std::string at(const char* name) const { return std::string(name) + "-" + std::to_string(layer_); }
    std::string of_layer(const char* name) const { return "blk." + std::to_string(layer_) + "." + name; }

    const llama_model& model_;
    ggml_context* context_;
    ggml_cgraph* graph_ = nullptr;
    std::deque<Planted> planted_;
    struct ByLength { // what a node's work is, and what each position of the cache adds to it
        Planted* planted;
        double bytes, bytes_per_position, flops_per_position; // bytes 0: not said
    };
    std::vector<ByLength> by_length_;
    std::int64_t tokens_ = 0, outputs_ = 0, kv_padded_ = 0;
    int layer_ = -1, working_ = 0;
};

} // namespace lookalike
