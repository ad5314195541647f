// SPDX-License-Identifier: Apache-2.0
// The named shapes of which a model with random weights can be made. Constants; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace plumb::decoder {

/// What only some families have.
struct ShapeExtras {
    bool qk_norm = false;
    bool rope_factors = false;          // a tensor of divisors of the frequencies
    std::string_view rope_scaling = {}; // "linear", "yarn"; with a factor of 4 over a quarter of the context
    std::uint32_t window = 0;           // positions a token sees
    std::uint32_t experts = 0;
    std::uint32_t experts_used = 0;
    std::uint32_t expert_feed_forward = 0;
};

struct Shape {
    std::string_view name;
    std::string_view architecture;
    std::uint32_t layers, hidden, heads, kv_heads, head_size, feed_forward, vocabulary, context;
    float rope_base;
    float epsilon;
    bool tied;
    bool biases; // of query, key and value
    ShapeExtras extras{};
};

[[nodiscard]] std::span<const Shape> shapes() noexcept;
/// Null for an unknown name.
[[nodiscard]] const Shape* find_shape(std::string_view name) noexcept;

} // namespace plumb::decoder
