// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>

#include "page/text_table.hpp"
#include "plumb/compare.hpp"
#include "render/compare_words.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;
using Align = TextTable::Align;

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
std::string plot(const std::vector<Figure>& runs, std::size_t columns) {
    static constexpr const char* blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
                                             "\u2585", "\u2586", "\u2587", "\u2588"};
    const std::size_t first = runs.size() > columns ? runs.size() - columns : 0;
    double least = 0;
    double most = 0;
    bool any = false;
    for (std::size_t i = first; i < runs.size(); ++i) {
        if (!runs[i].value) {
            continue;
        }
        least = any ? std::min(least, *runs[i].value) : *runs[i].value;
        most = any ? std::max(most, *runs[i].value) : *runs[i].value;
        any = true;
    }
    std::string out;
    for (std::size_t i = first; i < runs.size(); ++i) {
        if (!runs[i].value) {
            out += " ";
            continue;
        }
        const double height = most > least ? (*runs[i].value - least) / (most - least) : 0.5;
        out += blocks[std::min<std::size_t>(7, static_cast<std::size_t>(height * 8))];
    }
    return out;
}

struct Ends {
    Figure first, last;
    double least = 0, most = 0;
};

Ends ends_of(const std::vector<Figure>& runs) {
    Ends ends;
    for (const Figure& run : runs) {
        if (!run.value) {
            continue;
        }
        if (!ends.first.value) {
            ends.first = run;
            ends.least = ends.most = *run.value;
        }
        ends.last = run;
        ends.least = std::min(ends.least, *run.value);
        ends.most = std::max(ends.most, *run.value);
    }
    return ends;
}

void put_phase(std::string& out, const History& history, Phase phase, std::size_t columns, const Style& style) {
    TextTable table;
    table.add_column(phase_word(phase), Align::left);
    for (const char* heading : {"first us", "last us", "change", "least us", "most us"}) {
        table.add_column(heading, Align::right);
    }
    table.add_column("runs", Align::left);
    for (const HistoryRow& row : history.rows) {
        const Ends ends = ends_of(row.runs_ns);
        if (row.phase != phase || !ends.first.value) {
            continue;
        }
        Figure change;
        if (*ends.first.value > 0) {
            change.value = *ends.last.value / *ends.first.value - 1;
        }
        const std::string name = row.subject == CompareSubject::step ? "step" : row.name;
        table.add_row({printable(name, 40) + (row.device ? " (device)" : ""), microseconds(*ends.first.value),
                       microseconds(*ends.last.value), percent_text(change), microseconds(ends.least),
                       microseconds(ends.most), plot(row.runs_ns, columns)});
    }
    if (table.rows() != 0) {
        out += "\n";
        table.append_to(out, style.heading, style.plain);
    }
}

} // namespace

std::string render_text(const History& history, const TextOptions& options) {
    const Style style = options.color ? colored : uncolored;
    constexpr std::size_t beside_the_plot = 72;
    const std::size_t columns = std::clamp<std::size_t>(options.width, beside_the_plot + 16, 400) - beside_the_plot;
    std::string out = std::to_string(history.runs.size()) + (history.runs.size() == 1 ? " run" : " runs");
    if (!history.runs.empty()) {
        out += ", " + time_text(history.runs.front().start_realtime_ns) + " to " +
               time_text(history.runs.back().start_realtime_ns) + " UTC";
    }
    out += "; time per step of each run\n";
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::mixed}) {
        put_phase(out, history, phase, columns, style);
    }
    for (const std::string& note : history.notes) {
        out += "note  " + printable(note, 10000) + "\n";
    }
    return out;
}

} // namespace plumb
