// SPDX-License-Identifier: Apache-2.0
// What a node of an ONNX graph is: its brick and layer by its name, which exporters make from the modules of the model, by the rules of
// src/import/rules, and by its operator; and its work by its shapes. Pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "attach/onnxruntime/profile.hpp"
#include "plumb/work.hpp"

namespace plumb::attach::onnxruntime {

struct NodeLabel {
    std::string brick;       // one that no rule knows: "onnx_" and its operator
    std::int32_t layer = -1; // -1: none
};

/// "/model/layers.3/self_attn/q_proj/MatMul", "MatMul": qkv_projection of layer 3.
[[nodiscard]] NodeLabel label_of(std::string_view node, std::string_view operation);

/// Bytes where the operator reads its operands whole and all of them are told, weights that were packed beforehand included; flops of
/// products. The rest is absent.
[[nodiscard]] Work work_of(const ProfiledNode& node);

} // namespace plumb::attach::onnxruntime
