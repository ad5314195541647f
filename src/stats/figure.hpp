// SPDX-License-Identifier: Apache-2.0
// The two ways to make a Figure: measured, or absent with a reason. Plain values.
#pragma once

#include <string>
#include <utility>

#include "plumb/figure.hpp"

namespace plumb::stats {

[[nodiscard]] inline Figure measured(double value) { return {value, {}}; }
[[nodiscard]] inline Figure absent(std::string reason) { return {std::nullopt, std::move(reason)}; }

} // namespace plumb::stats
