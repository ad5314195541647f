// SPDX-License-Identifier: Apache-2.0
// What cells of a table are, whatever format they are written in.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace plumb::exporting {

enum class Given { always, sometimes };

// What stands for a missing value of a column that is given sometimes. Of a real one it is NaN.
inline constexpr std::uint8_t no_truth = 2;
inline constexpr std::int64_t no_integer = std::numeric_limits<std::int64_t>::min();
inline constexpr std::uint32_t no_text = std::numeric_limits<std::uint32_t>::max();

/// The text behind a code. Asked seldom: who writes keeps it.
using TextOfCode = std::function<std::string(std::uint32_t code)>;

} // namespace plumb::exporting
