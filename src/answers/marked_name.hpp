// SPDX-License-Identifier: Apache-2.0
// How tables name the brick of a row. Pure; no thread rule.
#pragma once

#include <string>

#include "analysis/brick_words.hpp"
#include "page/page.hpp"
#include "plumb/results.hpp"

namespace plumb::answers {

/// With marks that the table's legend explains: + parent, ~ laps, * timed in some steps, @ inside captured graphs.
[[nodiscard]] inline std::string marked_name(const Row& row) {
    std::string name = page::printable(row.key.name.empty() ? "(unnamed)" : row.key.name, 40);
    name += analysis::mark_beside_account(row.key.name);
    name += row.parent ? " +" : "";
    name += row.lap ? " ~" : "";
    if (row.basis == RowBasis::timed_steps) {
        name += " *";
    } else if (row.basis == RowBasis::replays) {
        name += row.sites_timed < row.sites ? " @-" : " @";
    }
    return name;
}

} // namespace plumb::answers
