// SPDX-License-Identifier: Apache-2.0
// The tensors of a model, found by name in a GGUF file and checked against its config. Points into the mapped file,
// which must live longer. Immutable but for the plans that the backend keeps in the Linears.
#pragma once

#include <cstddef>
#include <vector>

#include "decoder/gguf/reader.hpp"
#include "decoder/kernels/backend.hpp"
#include "decoder/model/config.hpp"

namespace plumb::decoder {

struct LayerWeights {
    const float* attention_norm = nullptr;
    Linear query, key, value, output;
    const float* feed_forward_norm = nullptr;
    Linear gate, up, down;
};

struct Weights {
    Weight embedding; // one row per token
    std::vector<LayerWeights> layers;
    const float* output_norm = nullptr;
    Linear head;                         // the embedding again where it is tied
    const float* rope_factors = nullptr; // rope_size / 2 divisors of the frequencies, or none
    bool tied = false;
    Type type = Type::f32; // of the layers' matrices
    std::size_t bytes = 0; // read by one decode step

    [[nodiscard]] std::size_t vocabulary() const noexcept { return embedding.rows; }
};

/// Errors: corrupt (missing tensor, wrong shape), unsupported (tensor type, tensors this decoder does not know).
[[nodiscard]] Result<Weights> read_weights(const gguf::File& file, const ModelConfig& config);

} // namespace plumb::decoder
