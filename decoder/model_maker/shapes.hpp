// SPDX-License-Identifier: Apache-2.0
// The named shapes of which a model with random weights can be made. Constants; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace plumb::decoder {

struct Shape {
    std::string_view name;
    std::string_view architecture;
    std::uint32_t layers, hidden, heads, kv_heads, head_size, feed_forward, vocabulary, context;
    float rope_base;
    float epsilon;
    bool tied;
    bool biases; // of query, key and value
};

[[nodiscard]] std::span<const Shape> shapes() noexcept;
/// Null for an unknown name.
[[nodiscard]] const Shape* find_shape(std::string_view name) noexcept;

} // namespace plumb::decoder
