// SPDX-License-Identifier: Apache-2.0
// For tests: figures that are there and figures that are not. Plain functions.
#pragma once

#include "plumb/figure.hpp"

namespace plumb::render {

[[nodiscard]] inline Figure measured(double value) { return {value, {}}; }
[[nodiscard]] inline Figure missing(const char* reason) { return {std::nullopt, reason}; }

} // namespace plumb::render
