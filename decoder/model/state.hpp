// SPDX-License-Identifier: Apache-2.0
// Everything a forward pass works on: weights, activations, kv caches, rope table; allocated once, before the first step.
// A state holds `batch` sequences, each with a cache of its own.
// Owned by a decoder; one thread. The gguf file and the backend must live longer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decoder/kernels/backend.hpp"
#include "decoder/model/config.hpp"
#include "decoder/model/weights.hpp"
#include "decoder/sampling/sampler.hpp"

namespace plumb::decoder {

struct State {
    ModelConfig config;
    Weights weights;
    ComputeBackend* backend = nullptr;
    std::size_t context = 0; // positions the cache holds
    std::size_t chunk = 0;   // rows the activations hold
    std::size_t batch = 1;
    std::vector<std::size_t> used;     // positions filled, per sequence
    std::vector<std::int32_t> sampled; // by the last step, per sequence

    HeadShape heads;
    Rope rope;
    std::vector<KvCache> caches; // [layer][sequence]; those of a layer follow each other in memory
    Type input = Type::f32;      // of the products of attention
    Type feed_input = Type::f32; // of the feed-forward network's
    Type head_input = Type::f32;

    // Activations, each as many rows as a step may have; blocks of fewer rows are cut from them.
    Block hidden, attention_normed, feed_normed, query, key, value, attended, projected, gate, up, activated;
    Block last;   // one row of the hidden state of each sequence, normed for the head
    Block logits; // one row for each sequence
    // Of a mixture of experts: one row for each token and expert it goes to.
    Routing routing;
    Block routed, dispatched, expert_gate, expert_up, expert_out;
    float* scratch = nullptr;

    std::vector<Buffer> memory;

    [[nodiscard]] const KvCache& cache(std::size_t layer, std::size_t sequence) const noexcept {
        return caches[layer * batch + sequence];
    }
    /// Makes products of `rows` rows possible; the head's have one row, or one for each sequence.
    [[nodiscard]] Status prepare(std::size_t rows);
    /// Makes the embedding table and the norms known to the backend.
    [[nodiscard]] Status prepare_constants();
};

/// Errors: out_of_memory, unsupported.
[[nodiscard]] Result<State> make_state(ModelConfig config, Weights weights, ComputeBackend& backend,
                                       std::size_t context, std::size_t chunk, std::size_t batch = 1);

} // namespace plumb::decoder
