// SPDX-License-Identifier: Apache-2.0
// A history as people read it: for each phase a line a row, with a plot of its runs.
#include <algorithm>
#include <ctime>

#include "answers/compare/compare.hpp"
#include "answers/compare/words.hpp"

namespace plumb {
namespace {

using namespace page;
using Runs = std::vector<std::optional<double>>;

constexpr std::size_t history_columns = 40;
constexpr std::size_t beside_the_plot = 72;

std::string time_text(std::int64_t realtime_ns) {
    const std::time_t seconds = static_cast<std::time_t>(realtime_ns / 1'000'000'000);
    std::tm when{};
    char text[32];
    if (gmtime_r(&seconds, &when) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &when) == 0) {
        return "n/a";
    }
    return text;
}

/// One block per run, its height between the least and the most of the row; the newest runs where there are more.
std::string plot(const Runs& runs, std::size_t columns) {
    static constexpr const char* blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                             "\u2585", "\u2586", "\u2587", "\u2588"};
    const std::size_t first = runs.size() > columns ? runs.size() - columns : 0;
    double least = 0;
    double most = 0;
    bool any = false;
    for (std::size_t i = first; i < runs.size(); ++i) {
        if (!runs[i]) {
            continue;
        }
        least = any ? std::min(least, *runs[i]) : *runs[i];
        most = any ? std::max(most, *runs[i]) : *runs[i];
        any = true;
    }
    std::string out;
    for (std::size_t i = first; i < runs.size(); ++i) {
        if (!runs[i]) {
            out += " ";
            continue;
        }
        const double height = most > least ? (*runs[i] - least) / (most - least) : 0.5;
        out += blocks[std::min<std::size_t>(7, static_cast<std::size_t>(height * 8))];
    }
    return out;
}

struct Ends {
    std::optional<double> first, last;
    double least = 0, most = 0;
};

Ends ends_of(const Runs& runs) {
    Ends ends;
    for (const std::optional<double>& run : runs) {
        if (!run) {
            continue;
        }
        if (!ends.first) {
            ends.first = run;
            ends.least = ends.most = *run;
        }
        ends.last = run;
        ends.least = std::min(ends.least, *run);
        ends.most = std::max(ends.most, *run);
    }
    return ends;
}

void add_phase(Page& page, const History& history, Phase phase, std::size_t columns) {
    TextTable table({phase_word(phase)}, {"first us", "last us", "change", "least us", "most us"}, {"runs"});
    for (const HistoryRow& row : history.rows) {
        const Ends ends = ends_of(row.runs_ns);
        if (row.phase != phase || !ends.first) {
            continue;
        }
        Figure change;
        if (*ends.first > 0) {
            change.value = *ends.last / *ends.first - 1;
        }
        const std::string name = row.subject == CompareSubject::step ? "step" : row.name;
        table.add_row({printable(name, history_columns) + (row.device ? " (device)" : ""), microseconds(*ends.first),
                       microseconds(*ends.last), percent_text(change), microseconds(ends.least),
                       microseconds(ends.most), plot(row.runs_ns, columns)});
    }
    if (table.rows() != 0) {
        page.blank();
        page.table(std::move(table));
    }
}

} // namespace

page::Page page_of(const History& history, const TextOptions& options) {
    Page page;
    const std::size_t columns = std::clamp<std::size_t>(options.width, beside_the_plot + 16, 400) - beside_the_plot;
    std::string head = std::to_string(history.runs.size()) + (history.runs.size() == 1 ? " run" : " runs");
    if (!history.runs.empty()) {
        head += ", " + time_text(history.runs.front().start_realtime_ns) + " to " +
                time_text(history.runs.back().start_realtime_ns) + " UTC";
    }
    page.line(head + "; time per step of each run");
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::mixed}) {
        add_phase(page, history, phase, columns);
    }
    page.notes(history.notes);
    return page;
}

} // namespace plumb
