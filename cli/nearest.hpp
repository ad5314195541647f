// SPDX-License-Identifier: Apache-2.0
// "did you mean": the known word nearest to a mistyped one. Pure function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plumb::cli {

/// Letters to change, insert, remove or swap with a neighbour.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// Empty when none is near enough to be what was meant.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& known);

} // namespace plumb::cli
