// SPDX-License-Identifier: Apache-2.0
// How the times of each brick are spread. Any thread.
#pragma once

#include <string>
#include <vector>

#include "analysis/row_table.hpp"
#include "page/options.hpp"
#include "page/page.hpp"

namespace plumb {

/// What may be asked for: nothing.
struct HistogramOptions {};
template <class V>
void describe(V&, HistogramOptions&) {}

struct HistogramReport {
    std::vector<analysis::RowSpread> rows;
    std::vector<std::string> notes;
};

[[nodiscard]] Result<HistogramReport> read_histogram(const std::vector<std::string>& files,
                                                     const HistogramOptions& options = {});

namespace analysis {
template <class V>
void describe(V& v, const RowSpread& s) {
    v.type("spread", "How the times of a row of `plumb report` are spread.");
    v("phase", s.row.key.phase, "");
    v("name", s.row.key.name, "the brick");
    v("source", s.row.source, "what timed it");
    v("lap", s.row.lap, "made of laps");
    v("parent", s.row.parent, "holds other bricks");
    v("count", s.row.time.count, "calls");
    v("min_ns", s.row.time.min_ns, "");
    v("max_ns", s.row.time.max_ns, "");
    v("p50_ns", s.row.time.p50_ns, "");
    v("begin_ns", s.bins.begin_ns, "where the first bin begins");
    v("end_ns", s.bins.end_ns, "where the last one ends: of 100 calls 99 take no longer, within 0.8 %");
    v("bins", s.bins.counts, "calls in bins of equal width; empty: memory was short");
    v("above", s.bins.above, "calls that took longer than `end_ns`");
}
} // namespace analysis

template <class V>
void describe(V& v, const HistogramReport& r) {
    v.type("histogram", "How the times of each brick are spread (`plumb histogram`).");
    v("rows", r.rows, "the bricks of `plumb report`, in the same order");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const HistogramReport&) { return "plumb.histogram/1"; }
[[nodiscard]] page::Page page_of(const HistogramReport& report, const TextOptions& options);

} // namespace plumb
