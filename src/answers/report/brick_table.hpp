// SPDX-License-Identifier: Apache-2.0
// The table of one phase: bricks by their share of the step, then what lies between and beside them.
// Pure functions over a Report; no thread rule.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "answers/marked_name.hpp"
#include "page/page.hpp"
#include "plumb/results.hpp"

namespace plumb::answers {

/// Rows of one phase. `phase` is null for scopes that belong to no step.
struct PhaseRows {
    const PhaseSummary* phase = nullptr;
    std::vector<const Row*> rows;                // largest sum first
    std::map<std::string, std::string> known_by; // by brick; only of traces that were imported
    double leaf_calls_ns = 0;                    // per step, also of rows marked as parents
};

/// The rows of `phase`; of no step at all where `summary` is null.
[[nodiscard]] PhaseRows rows_of(const Report& report, const PhaseSummary* summary);

[[nodiscard]] std::string calls_cell(double calls);

/// The table with its legend and the reasons for what is n/a.
void add_brick_table(page::Page& page, const PhaseRows& rows);

/// The mean of every brick in every layer, in blocks no wider than `width`.
void add_layer_table(page::Page& page, const Report& report, const PhaseSummary& phase, std::size_t width);

} // namespace plumb::answers
