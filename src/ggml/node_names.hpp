// SPDX-License-Identifier: Apache-2.0
// From the names in a ggml graph to bricks and layers. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plumb/bricks.hpp"

namespace plumb::ggml {

/// What names a node: its own name, its operation (ggml_op_desc), and the first operand whose name ends with .weight or
/// .bias; empty: none has.
struct NodeWords {
    std::string_view name, operation, weight;
};

/// Absent: no well-known brick; other_name() says what it is then called.
[[nodiscard]] std::optional<Brick> brick_of(const NodeWords& node);

/// "ggml_soft_max"
[[nodiscard]] std::string other_name(std::string_view operation);

/// The layer that the name of a node or weight states: norm-3, cache_k_l3, blk.3.attn_q.weight.
[[nodiscard]] std::optional<std::int32_t> layer_in(std::string_view name);

/// The layer of a node: what its weight states, then its own name, then that of the node before it. -1: none.
[[nodiscard]] std::int32_t layer_of(const NodeWords& node, std::int32_t before);

/// Whether it is a norm whose weight, or bias, is in the node behind it.
[[nodiscard]] bool is_norm_with_weight(const NodeWords& node);

/// Whether the operation computes nothing: it only names a part of another tensor.
[[nodiscard]] bool computes_nothing(std::string_view operation);

} // namespace plumb::ggml
