// SPDX-License-Identifier: Apache-2.0
#include "answers/histogram/histogram.hpp"

#include <algorithm>
#include <iterator>

#include "analysis/loss_note.hpp"
#include "answers/marked_name.hpp"
#include "answers/reading.hpp"

namespace plumb {
namespace {

constexpr std::size_t bins = 24;
constexpr const char* levels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

Result<answers::Pending<HistogramReport>> begin(answers::Reading& reading, const HistogramOptions&) {
    analysis::ReportReader& reader = reading.report();
    return answers::Pending<HistogramReport>([&reader, number = reader.ask_spreads(bins)]() -> Result<HistogramReport> {
        const Report report = reader.take(number);
        HistogramReport made{reader.take_spreads(), {}};
        std::copy_if(report.notes.begin(), report.notes.end(), std::back_inserter(made.notes),
                     [](const std::string& note) { return note.starts_with(analysis::beyond_rows); });
        analysis::add_loss_note(analysis::lost_of(report.losses), made.notes);
        return made;
    });
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

void add_marks(page::Page& page, const HistogramReport& report) {
    const auto explain = [&](const char* words, auto&& is_marked) {
        if (std::any_of(report.rows.begin(), report.rows.end(),
                        [&](const analysis::RowSpread& spread) { return is_marked(spread.row); })) {
            page.line(words, page::Tone::faint);
        }
    };
    explain("+  holds other bricks: their time is in it too", [](const Row& row) { return row.parent; });
    explain("~  made of laps: also holds the gap to the next one", [](const Row& row) { return row.lap; });
    explain("*  a device queue that is timed in some steps only: of those",
            [](const Row& row) { return row.basis == RowBasis::timed_steps; });
    explain("@  inside captured graphs: of the replays that were sampled; @- some sites were never timed",
            [](const Row& row) { return row.basis == RowBasis::replays; });
}

} // namespace

page::Page page_of(const HistogramReport& report, const TextOptions&) {
    using namespace page;
    Page page;
    TextTable table({"phase", "brick"}, {"calls", "min us", "p50 us", "p99 us", "max us"},
                    {"the shortest 99 %", "source"});
    for (const analysis::RowSpread& spread : report.rows) {
        const Distribution& time = spread.row.time;
        const std::string phase = word_of(spread.row.key.phase), name = answers::marked_name(spread.row),
                          whose = phase + ' ' + name;
        table.add_row({phase, name, grouped(time.count), fixed(time.min_ns / 1e3, 1),
                       page.figure(whose, time.p50_ns, 1e3, 1), page.figure(whose, time.p99_ns, 1e3, 1),
                       fixed(time.max_ns / 1e3, 1), bars(spread.bins), printable(spread.row.source, 40)});
    }
    if (table.rows() == 0) {
        page.note("No brick was timed outside of warm-up.");
    } else {
        page.table(std::move(table));
    }
    add_marks(page, report);
    page.reasons();
    page.notes(report.notes);
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
