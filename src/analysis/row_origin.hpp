// SPDX-License-Identifier: Apache-2.0
// What timed a row of a report, and the words that tell rows of one name apart by it. Pure functions.
#pragma once

#include <compare>
#include <set>
#include <string>

#include "plumb/results.hpp"

namespace plumb::analysis {

/// Rows of one phase, name and kind are as many as these.
struct RowOrigin {
    std::string source;
    bool device = false;
    RowBasis basis = RowBasis::steps;
    auto operator<=>(const RowOrigin&) const = default;
};

[[nodiscard]] RowOrigin origin_of(const Row& row);

/// What no other of `all` shares: "cuda_event"; "cpu_tsc, device" where that source timed the host, too. Empty: there is
/// no other.
[[nodiscard]] std::string words_apart(const RowOrigin& own, const std::set<RowOrigin>& all);

} // namespace plumb::analysis
