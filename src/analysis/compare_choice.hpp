// SPDX-License-Identifier: Apache-2.0
// Of more steps than a comparison keeps numbers of: which it keeps, and what percentiles of them are worth. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace plumb::analysis {

/// A bijection of 64 bits with full avalanche.
[[nodiscard]] std::uint64_t mixed_bits(std::uint64_t x);

/// `most` of `all` in order. As good as at random, so that no pattern of an engine's steps is followed, but the same
/// each time. `seed` differs by run: what a choice does to a figure is then noise between runs.
[[nodiscard]] std::vector<std::size_t> chosen_of(std::vector<std::size_t> all, std::size_t most, std::uint64_t seed);

/// Sorted values, chosen from among `all` -> percentile, or NaN where there are too few (n < 10 / (1 - share)) or the
/// choice decides it.
[[nodiscard]] double chosen_percentile(const std::vector<double>& sorted, double share, std::size_t all);

} // namespace plumb::analysis
