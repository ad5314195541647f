// SPDX-License-Identifier: Apache-2.0
// The shape of a model as its metadata gives it. Families differ by these values alone, and all run the same forward pass.
// Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "decoder/gguf/reader.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

/// How a context longer than the trained one is reached.
struct RopeScaling {
    enum class Kind : std::uint8_t { none, linear, yarn };
    Kind kind = Kind::none;
    double factor = 1;           // how much longer
    double original_context = 0; // yarn: what the model was trained for at first
    double extrapolation = 1;    // yarn: share of the frequencies that the ramp leaves alone
    double magnitude = 1;        // yarn: of cos and sin, beside its own
    double beta_fast = 32;       // yarn: turns within the original context from which on a frequency stays
    double beta_slow = 1;        // yarn: turns below which a frequency is divided by the factor
};

enum class Activation : std::uint8_t { silu, gelu };

/// A mixture of experts instead of one feed-forward network; none where count is 0.
struct Experts {
    std::size_t count = 0;
    std::size_t used = 0; // of each token
    std::size_t feed_forward = 0;
    bool normalise = true;
    float scale = 1;
};

struct ModelConfig {
    std::string architecture; // "llama", "qwen3", …
    std::string name;         // general.name, or the file's name
    std::size_t layers = 0;
    std::size_t hidden = 0;
    std::size_t heads = 0;
    std::size_t kv_heads = 0;
    std::size_t head_size = 0;
    std::size_t feed_forward = 0;
    std::size_t context = 0;   // what the model was trained for
    std::size_t window = 0;    // positions a token sees; 0: all
    std::size_t rope_size = 0; // values of a head that turn
    double rope_base = 10000;
    RopeScaling rope_scaling;
    float epsilon = 1e-5F;
    float embedding_scale = 1;
    Activation activation = Activation::silu;
    bool rope_halves = false;
    bool qk_norm = false; // every head of query and key is normed before it turns
    Experts experts;

    [[nodiscard]] std::size_t query_size() const noexcept { return heads * head_size; }
    [[nodiscard]] std::size_t kv_size() const noexcept { return kv_heads * head_size; }
};

/// Errors: unsupported (architecture, or a key that this decoder would have to heed), corrupt (a key missing or out of
/// range).
[[nodiscard]] Result<ModelConfig> read_config(const gguf::File& file);

} // namespace plumb::decoder
