// SPDX-License-Identifier: Apache-2.0
// Everything a forward pass works on: weights, activations, kv cache, rope table; allocated once, before the first step.
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
    Backend* backend = nullptr;
    std::size_t context = 0; // positions the cache holds
    std::size_t chunk = 0;   // rows the activations hold
    std::size_t used = 0;    // positions filled

    HeadShape heads;
    Rope rope;
    std::vector<KvCache> cache; // per layer
    Type input = Type::f32;     // of the layers' products
    Type head_input = Type::f32;

    // Activations, each `chunk` rows; blocks of fewer rows are cut from them.
    Block hidden, normed, query, key, value, attended, projected, gate, up, activated;
    Block last;   // one row of the hidden state, normed for the head
    Block logits; // one row
    float* scratch = nullptr;

    std::vector<Buffer> memory;

    /// Makes products of `rows` rows possible; the head's always have one row.
    [[nodiscard]] Status prepare(std::size_t rows);
    /// Makes the embedding table and the norms known to the backend.
    [[nodiscard]] Status prepare_constants();
};

/// Errors: out_of_memory, unsupported.
[[nodiscard]] Result<State> make_state(ModelConfig config, Weights weights, Backend& backend, std::size_t context,
                                       std::size_t chunk);

} // namespace plumb::decoder
