// SPDX-License-Identifier: Apache-2.0
// The tensors of a model, found by name in a GGUF file and checked against its config. Points into the mapped file,
// which must live longer. Immutable but for the plans that the backend keeps in the Linears.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "decoder/gguf/reader.hpp"
#include "decoder/kernels/backend.hpp"
#include "decoder/model/config.hpp"

namespace plumb::decoder {

/// One layer. A dense one has gate, up and down; a mixture of experts a router and a stack of each.
struct LayerWeights {
    const float* attention_norm = nullptr;
    Linear query, key, value, output;
    const float* query_norm = nullptr; // of head_size, where the model norms heads
    const float* key_norm = nullptr;
    const float* feed_forward_norm = nullptr;
    Linear gate, up, down;
    Linear router;
    Stack expert_gate, expert_up, expert_down;

    /// f(linear) for every matrix that all tokens meet.
    template <class F>
    void each_linear(F&& f) {
        for (Linear* linear : {&query, &key, &value, &output, &gate, &up, &down, &router}) {
            if (linear->weight.data != nullptr) {
                f(*linear);
            }
        }
    }
    [[nodiscard]] std::array<const Stack*, 3> stacks() const { return {&expert_gate, &expert_up, &expert_down}; }
};

struct Weights {
    Weight embedding; // one row per token
    std::vector<LayerWeights> layers;
    const float* output_norm = nullptr;
    Linear head;                         // the embedding again where it is tied
    const float* rope_factors = nullptr; // rope_size / 2 divisors of the frequencies, or none
    bool tied = false;
    Type type = Type::f32; // that holds the most bytes of the layers
    std::size_t bytes = 0; // read by one decode step of one sequence

    [[nodiscard]] std::size_t vocabulary() const noexcept { return embedding.rows; }
};

/// Errors: corrupt (missing tensor, wrong shape), unsupported (tensor type, tensors this decoder does not know).
[[nodiscard]] Result<Weights> read_weights(const gguf::File& file, const ModelConfig& config);

} // namespace plumb::decoder
