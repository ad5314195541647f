// SPDX-License-Identifier: Apache-2.0
// What modules say of the kernels that were launched inside them: src/import/rules/modules.rules, built in. Views into that text.
// Pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "import/rules/kernel_label.hpp"

namespace plumb::imported {

struct ModuleRule {
    std::vector<std::string_view> modules, inside;
    std::vector<std::string_view> bricks, helpers; // its own; those of others that it may hold
    bool decides = false;                          // a kernel of no other brick is of the first of its own

    [[nodiscard]] bool owns(std::string_view brick) const;
    [[nodiscard]] bool holds(std::string_view brick) const; // as a helper
};

/// Of the innermost of these modules, which are classes or names in the model, outermost first; null: nothing is known of it.
[[nodiscard]] const ModuleRule* module_rule(std::span<const std::string_view> path);

/// "Qwen3DecoderLayer_17" is layer 17 of Qwen3DecoderLayer, and so is "layers", "17".
struct LayerOfModel {
    std::string_view kind;
    std::uint32_t number = 0;
};
/// The outermost that is a layer.
[[nodiscard]] std::optional<LayerOfModel> layer_of_modules(std::span<const std::string_view> path);

/// What the module knows of its kernel wins over places and names, but not over helpers that their names tell.
void apply(const ModuleRule& rule, LabelEvidence evidence, KernelLabel& label);

/// The rules that are built in.
[[nodiscard]] std::string_view built_in_module_rules() noexcept;

} // namespace plumb::imported
