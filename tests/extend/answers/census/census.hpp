// SPDX-License-Identifier: Apache-2.0
// How many steps each phase has: the smallest answer there can be. Plain values; no thread rule.
#pragma once

#include <string>
#include <vector>

#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/results.hpp"

namespace plumb {

struct CensusOptions {
    std::uint64_t least = 0;
};

struct CensusRow {
    Phase phase = Phase::none;
    std::uint64_t steps = 0;
    Figure mean_ns;
};

struct CensusReport {
    std::vector<CensusRow> rows;
};

[[nodiscard]] CensusReport census_of(const Report& report, const CensusOptions& options);

template <class V>
void describe(V& v, CensusOptions& o) {
    v("least", o.least, "Only phases of at least so many steps");
}

template <class V>
void describe(V& v, const CensusRow& r) {
    v.type("census row", "One phase.");
    v("phase", r.phase, "");
    v("steps", r.steps, "complete ones");
    v("mean_ns", r.mean_ns, "of a step");
}

template <class V>
void describe(V& v, const CensusReport& r) {
    v.type("census", "How many steps each phase has.");
    v("rows", r.rows, "by phase");
}

constexpr const char* schema_of(const CensusReport&) { return "plumb.census/1"; }
[[nodiscard]] page::Page page_of(const CensusReport& report, const TextOptions& options);

} // namespace plumb
