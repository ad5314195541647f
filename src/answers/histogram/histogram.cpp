// SPDX-License-Identifier: Apache-2.0
#include "answers/histogram/histogram.hpp"

#include <algorithm>

#include "answers/reading.hpp"

namespace plumb {
namespace {

constexpr std::size_t bins = 24;
constexpr const char* levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

Result<answers::Pending<HistogramReport>> begin(answers::Reading& reading, const HistogramOptions&) {
    analysis::ReportReader& reader = reading.report();
    reader.ask_spreads(bins);
    return answers::Pending<HistogramReport>(
        [&reader]() -> Result<HistogramReport> { return HistogramReport{reader.take_spreads()}; });
}

std::string bars(const stats::Bins& of) {
    const std::uint64_t most = of.counts.empty() ? 0 : *std::max_element(of.counts.begin(), of.counts.end());
    std::string line;
    for (const std::uint64_t count : of.counts) {
        line += levels[count == 0
                           ? 0
                           : 1 + static_cast<std::size_t>(7 * static_cast<double>(count) / static_cast<double>(most))];
    }
    return line;
}

} // namespace

page::Page page_of(const HistogramReport& report, const TextOptions&) {
    using namespace page;
    Page page;
    TextTable table({"phase", "brick"}, {"calls", "min us", "p50 us", "p99 us", "max us"}, {"the shortest 99 %"});
    for (const analysis::RowSpread& row : report.rows) {
        const std::string phase = word_of(row.phase), name = printable(row.name, 40), whose = phase + ' ' + name;
        table.add_row({phase, name, grouped(row.time.count), fixed(row.time.min_ns / 1e3, 1),
                       page.figure(whose, row.time.p50_ns, 1e3, 1), page.figure(whose, row.time.p99_ns, 1e3, 1),
                       fixed(row.time.max_ns / 1e3, 1), bars(row.bins)});
    }
    if (table.rows() == 0) {
        page.note("No brick was timed outside of warm-up.");
    } else {
        page.table(std::move(table));
    }
    page.reasons();
    return page;
}

Result<HistogramReport> read_histogram(const std::vector<std::string>& files, const HistogramOptions& options) {
    return answers::read_one<HistogramReport>(files.front(),
                                              [&](answers::Reading& reading) { return begin(reading, options); });
}

const answers::Entry& histogram_answer() {
    static const answers::Entry entry = answers::joining_entry<HistogramOptions, HistogramReport, begin>(
        "histogram", "Show how the times of each brick are spread");
    return entry;
}

} // namespace plumb
