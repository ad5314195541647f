// SPDX-License-Identifier: Apache-2.0
// What a brick is called that a label, a copy or a kernel's own name gives. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "plumb/bricks.hpp"

namespace plumb::imported {

struct BrickName {
    std::string name;
    Category category = Category::other;
    std::uint16_t well_known = 0; // its id; 0: another name
};

[[nodiscard]] BrickName brick_named(std::string name);

/// A kernel that nothing tells is named after itself: "void at::native::f<…>(…)" is at::native::f.
[[nodiscard]] std::string short_name(std::string_view kernel);

/// "Memcpy HtoD (Pageable -> Device)", "CopyDeviceToDevice", "MemcpyD2H".
[[nodiscard]] const char* copy_brick(std::string_view name);

} // namespace plumb::imported
