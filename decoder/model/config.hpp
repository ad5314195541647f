// SPDX-License-Identifier: Apache-2.0
// The shape of a model as its metadata gives it: llama and qwen2, dense. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "decoder/gguf/reader.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

struct ModelConfig {
    std::string architecture; // "llama", "qwen2"
    std::string name;         // general.name, or the file's name
    std::size_t layers = 0;
    std::size_t hidden = 0;
    std::size_t heads = 0;
    std::size_t kv_heads = 0;
    std::size_t head_size = 0;
    std::size_t feed_forward = 0;
    std::size_t context = 0;   // what the model was trained for
    std::size_t rope_size = 0; // values of a head that turn
    double rope_base = 10000;
    double rope_scale = 1; // positions are divided by it
    float epsilon = 1e-5F;
    bool rope_halves = false;

    [[nodiscard]] std::size_t query_size() const noexcept { return heads * head_size; }
    [[nodiscard]] std::size_t kv_size() const noexcept { return kv_heads * head_size; }
};

/// Errors: unsupported (architecture, mixture of experts, rope scaling), corrupt (a key missing or out of range).
[[nodiscard]] Result<ModelConfig> read_config(const gguf::File& file);

} // namespace plumb::decoder
