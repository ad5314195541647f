// SPDX-License-Identifier: Apache-2.0
// What each operation of a trace is: its brick, and its layer within the step. Plain data; owned by whoever holds the value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "import/trace.hpp"
#include "plumb/bricks.hpp"

namespace plumb::imported {

struct BrickName {
    std::string name;
    Category category = Category::other;
    std::uint16_t well_known = 0; // its id; 0: another name
};
/// Of that name, if it is a well-known brick's with its category.
[[nodiscard]] BrickName brick_named(std::string name, Category otherwise = Category::other);

struct Labels {
    std::vector<BrickName> bricks;
    std::vector<std::uint32_t> brick_of; // of each op: index in bricks
    std::vector<std::uint16_t> layer_of; // of each op: layer + 1; 0: outside of layers
};

/// Where nothing is known of a kernel but its name: "void cutlass::Kernel2<…>(…)" is cutlass::Kernel2. Copies are copy_h2d and so on.
[[nodiscard]] Labels label_by_name(const Trace& trace);

} // namespace plumb::imported
