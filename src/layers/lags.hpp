// SPDX-License-Identifier: Apache-2.0
// At which distances a sequence repeats. Time grows with its length alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace plumb {

constexpr std::size_t shortest_unit = 3, longest_unit = 1024;
constexpr std::uint32_t no_symbol = UINT32_MAX; // stands for what is explained already: equals nothing, not even itself

/// Distances that explain most of the sequence, the best first.
[[nodiscard]] std::vector<std::size_t> likely_lags(std::span<const std::uint32_t> symbols);

/// Where the stretch of this length begins that has most in common with those before and after it. REQUIRES as many symbols.
[[nodiscard]] std::size_t best_stretch(std::span<const std::uint32_t> symbols, std::size_t lag);

} // namespace plumb
