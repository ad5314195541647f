// SPDX-License-Identifier: Apache-2.0
// From the names in a ggml graph to bricks and layers. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "plumb/bricks.hpp"

namespace plumb::attach::ggml {

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

/// Whether a node of this name stands behind the last layer.
[[nodiscard]] bool after_layers(std::string_view name);

/// Whether the operation computes nothing: it only names a part of another tensor.
[[nodiscard]] bool computes_nothing(std::string_view operation);

} // namespace plumb::attach::ggml
