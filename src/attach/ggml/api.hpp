// SPDX-License-Identifier: Apache-2.0
// What is called of a ggml and a llama.cpp that nobody here built: functions by name, and one place in a struct, found by
// looking. Plain data; the functions are safe to call where the engine itself would call them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "attach/slots.hpp"
#include "ggml/node_work.hpp"
#include "plumb/result.hpp"

// The engine's own types, of which only addresses are used here.
struct ggml_tensor;
struct ggml_cgraph;
struct ggml_context;
struct ggml_backend_sched;
struct llama_context;
struct llama_model;

namespace plumb::attach::ggml {

using Tensor = ::ggml_tensor;
using Graph = ::ggml_cgraph;
using Scheduler = ::ggml_backend_sched;

/// llama_batch, as it has been since October 2024. Arrays of n_tokens; any pointer but one of token and embd may be null.
struct Batch {
    std::int32_t n_tokens;
    std::int32_t* token;
    float* embd;
    std::int32_t* pos;
    std::int32_t* n_seq_id;
    std::int32_t** seq_id;
    std::int8_t* logits;
};
static_assert(sizeof(Batch) == 56, "as the engine passes it by value");

/// PLUMB_GGML_FUNCTIONS(X): X(result, name, parameters) of libggml-base; all must be there.
#define PLUMB_GGML_FUNCTIONS(X)                 \
    X(const char*, get_name, (const Tensor*))   \
    X(const char*, op_desc, (const Tensor*))    \
    X(std::size_t, nbytes, (const Tensor*))     \
    X(std::int64_t, nelements, (const Tensor*)) \
    X(std::int64_t, nrows, (const Tensor*))     \
    X(int, graph_n_nodes, (Graph*))             \
    X(Tensor*, graph_node, (Graph*, int))

struct GgmlApi {
#define PLUMB_GGML_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
    PLUMB_GGML_FUNCTIONS(PLUMB_GGML_MEMBER)
#undef PLUMB_GGML_MEMBER

    std::size_t sources_at = 0; // of the array of operands in a tensor

    /// Error unsupported: one sentence that names what is missing.
    static Result<GgmlApi> find(const Pinned& library);

    /// Operand `index` (below 4) of a node; null: it has none.
    [[nodiscard]] const Tensor* source(const Tensor* node, std::size_t index) const {
        const auto* at = reinterpret_cast<const char*>(node) + sources_at + index * sizeof(void*);
        return *reinterpret_cast<const Tensor* const*>(at);
    }
    static constexpr std::size_t sources = plumb::ggml::NodeFacts::most_sources;
};

/// Whether its llama_decode takes a Batch as it is here: one that can load backends is not older.
[[nodiscard]] bool takes_batch(const Pinned& library);

/// "ggml 0.9.5 (5e2bbcb)": what the libraries say about themselves.
std::string version_of(const Pinned& library);

/// What is asked of libllama, where it is there.
struct Llama {
    const llama_model* (*get_model)(const llama_context*) = nullptr;
    std::int32_t (*model_desc)(const llama_model*, char*, std::size_t) = nullptr;
    std::int32_t (*model_meta_val_str)(const llama_model*, const char*, char*, std::size_t) = nullptr;
    std::int32_t (*model_n_layer)(const llama_model*) = nullptr;
    std::int32_t (*n_threads)(llama_context*) = nullptr;
    // Of newer releases.
    void* (*get_memory)(llama_context*) = nullptr;
    std::int32_t (*memory_seq_pos_max)(void*, std::int32_t) = nullptr;

    static Llama find(const Pinned& library);

    /// Its own name and its type, such as "qwen2.5-0.5b q8_0"; of one without a name what the engine calls it; empty where
    /// it cannot be asked.
    [[nodiscard]] std::string model(const llama_context* context) const;
    /// 0: cannot be asked.
    [[nodiscard]] std::int32_t layers(const llama_context* context) const;
    [[nodiscard]] std::int32_t threads(llama_context* context) const;
    /// Positions of this sequence that are cached; 0 where it cannot be asked.
    [[nodiscard]] std::uint64_t cached(llama_context* context, std::int32_t sequence) const;
};

} // namespace plumb::attach::ggml
