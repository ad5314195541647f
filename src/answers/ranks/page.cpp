// SPDX-License-Identifier: Apache-2.0
// Clocks, who is late, collectives with their verdicts, a heat map of waiting by rank and layer.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "answers/ranks/ranks.hpp"
#include "base/units.hpp"
#include "page/heat.hpp"
#include "stats/median.hpp"

namespace plumb {
namespace {

using namespace page;
using ranks::ClockSource;

constexpr double us = 1e3;
constexpr double ms = 1e6;
constexpr std::size_t most_rows = 64; // ranks in a table
constexpr std::size_t most_layers = 200;
constexpr std::size_t most_name = 40; // of a file
constexpr double heat_step = 0.25;    // of the median, for each shade

std::string range(double least, double most, double unit, int decimals) {
    const std::string low = fixed(least / unit, decimals);
    const std::string high = fixed(most / unit, decimals);
    return low == high ? low : low + " to " + high;
}
std::string range(const TimeRange& time, double unit, int decimals = 1) {
    return range(time.least_ns, time.most_ns, unit, decimals);
}
std::string percent(double part) { return fixed(part * 100, 1) + " %"; }
std::string count_of(std::uint64_t count, const char* one, const char* many) {
    return grouped(count) + " " + (count == 1 ? one : many);
}

std::string head_of(const RanksReport& report) {
    std::string text = std::to_string(report.ranks.size()) +
                       (report.world != 0 ? " of " + std::to_string(report.world) : std::string()) + " ranks";
    text += report.hosts > 1 ? " on " + std::to_string(report.hosts) + " hosts" : "";
    text += " · " + count_of(report.collectives, "collective", "collectives") + " matched · ";
    double worst = 0;
    std::size_t exact = 0, bound = 0, unknown = 0;
    for (const RankRow& row : report.ranks) {
        const bool is_bound = row.clock == ClockSource::bounds;
        const bool known = row.error_ns.value.has_value();
        unknown += known ? 0 : 1;
        bound += known && is_bound ? 1 : 0;
        exact += known && !is_bound ? 1 : 0;
        worst = std::max(worst, row.error_ns.value.value_or(0));
    }
    text += bound == 0 && unknown == 0
                ? "one clock, exact"
                : "clocks: " + std::to_string(exact) + " exact, " + std::to_string(bound) + " within " +
                      fixed(worst / us, 1) + " us, " + std::to_string(unknown) + " unknown";
    return text;
}

/// Of ranks that only have a number by their names, what each recording is called: "r-2.plumb of rank2.json". Empty where they say
/// their ranks themselves.
std::vector<std::string> names_of(const RanksReport& report) {
    std::vector<std::string> names;
    std::set<std::string> seen;
    bool alike = false; // in several folders
    for (const RankRow& row : report.ranks) {
        alike = !seen.insert(std::filesystem::path(row.file).filename().string()).second || alike;
    }
    for (const RankRow& row : report.ranks) {
        if (report.numbered) {
            const std::filesystem::path path(row.file);
            names.push_back(printable(alike ? path.string() : path.filename().string(), most_name) +
                            (row.trace.empty() ? "" : " of " + printable(row.trace, most_name)));
        }
    }
    return names;
}

void add_ranks(Page& page, const RanksReport& report) {
    const std::vector<std::string> names = names_of(report);
    TextTable table({"rank"}, {});
    if (!names.empty()) {
        table.add_column("recording", TextTable::Align::left);
    }
    for (const char* heading : {"host", "clock"}) {
        table.add_column(heading, TextTable::Align::left);
    }
    for (const char* heading : {"offset us", "± us", "drift ppm", "collectives", "last", "likely", "at most",
                                "alone us", "wait ms", "of ms", "busy %", "hidden %"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    for (std::size_t i = 0; i < report.ranks.size() && i < most_rows; ++i) {
        const RankRow& row = report.ranks[i];
        std::vector<std::string> cells = {std::to_string(row.rank),
                                          printable(row.host, 24),
                                          word_of(row.clock),
                                          page.figure("offset", row.offset_ns, us, 1),
                                          page.figure("offset", row.error_ns, us, 1),
                                          page.figure("offset", row.drift_ppm, 1, 2),
                                          grouped(row.collectives),
                                          grouped(row.last),
                                          grouped(row.last_likely),
                                          grouped(row.last_at_most),
                                          row.alone_ns.value ? figure_text(row.alone_ns, us, 1) : "-",
                                          range(row.wait, ms, 2),
                                          fixed(row.time_ns / ms, 2),
                                          page.figure("busy", row.busy_share, 0.01, 1),
                                          page.figure("hidden", row.hidden_share, 0.01, 1)};
        if (!names.empty()) {
            cells.insert(cells.begin() + 1, names[i]);
        }
        table.add_row(std::move(cells));
    }
    page.table(std::move(table));
    if (report.ranks.size() > most_rows) {
        page.line(std::to_string(report.ranks.size() - most_rows) + " more ranks: --json lists them", Tone::faint);
    }
    page.blank();
}

void add_late(Page& page, const RanksReport& report) {
    std::string before; // ranks that are late themselves
    const std::vector<std::string> names = names_of(report);
    for (const LateRank& late : report.late) {
        const bool all = late.margin_ns == 0;
        const auto row = std::find_if(report.ranks.begin(), report.ranks.end(),
                                      [&late](const RankRow& rank) { return rank.rank == late.rank; });
        const std::string name = names.empty() || row == report.ranks.end()
                                     ? ""
                                     : " (" + names[static_cast<std::size_t>(row - report.ranks.begin())] + ")";
        std::string text =
            "rank " + std::to_string(late.rank) + name + " is the last to arrive" +
            (all ? "" : ", by " + grouped(static_cast<std::uint64_t>(late.margin_ns / us)) + " us or more,") + " in " +
            grouped(late.last) + " of " + grouped(late.collectives) + " collectives" +
            (all ? "" : " where some rank may be") + (before.empty() ? "" : ", those of rank " + before + " left out") +
            " (" + fixed(late.expected, 0) + " if all were alike), " + fixed(late.alone_ns / us, 1) +
            " us after the one before it on average: " + percent(late.cost_share) +
            " of the run is lost to it at least";
        if (late.host_bound) {
            text += "; its devices idle " + percent(*late.idle_share.value) + " of the time, those of the others " +
                    percent(*late.others_idle_share.value) + ": it is bound by its host";
        }
        page.marked("LATE  ", text);
        before += (before.empty() ? "" : ", ") + std::to_string(late.rank);
    }
    if (report.late.empty() && report.collectives != 0) {
        page.line("no rank is late: none is last more often than chance lets it, and costs 1 % of the run");
    }
    page.line((report.steps != 0 ? "if nobody waited: " + range(report.gain, us) + " us a step less, in " +
                                       count_of(report.steps, "step", "steps")
                                 : "if nobody waited: " + range(report.gain, ms, 3) + " ms less in the run"));
    page.blank();
}

void add_groups(Page& page, const std::vector<CollectiveRow>& rows, const char* heading) {
    if (rows.empty()) {
        return;
    }
    TextTable table({heading, "group"},
                    {"collectives", "wait us", "move us", "wait %", "begins apart us", "ends apart us"},
                    {"verdict", "single ones", "most often last"});
    for (std::size_t i = 0; i < rows.size() && i < most_layers; ++i) {
        const CollectiveRow& row = rows[i];
        const std::string brick = row.layer ? row.brick + " layer " + std::to_string(*row.layer) : row.brick;
        table.add_row(
            {printable(brick, 40), row.group.empty() ? "all" : printable(row.group, 16), grouped(row.collectives),
             range(row.wait, us), range(row.move, us), range(row.least_share, row.most_share, 0.01, 1),
             figure_text(row.begin_spread_ns, us, 1), figure_text(row.end_spread_ns, us, 1), word_of(row.verdict),
             std::to_string(row.arrivals) + " A " + std::to_string(row.transfers) + " T " + std::to_string(row.mixed) +
                 " M " + std::to_string(row.inconclusive) + " ?",
             row.last == 0 ? "none for certain" : "rank " + std::to_string(row.last_rank) + ": " + grouped(row.last)});
    }
    page.table(std::move(table));
    page.blank();
}

double middle(const TimeRange& time) { return (time.least_ns + time.most_ns) / 2; }

void add_map(Page& page, const RanksReport& report, const TextOptions& options) {
    std::set<std::uint32_t> layers;
    std::vector<double> all;
    for (const RankRow& row : report.ranks) {
        for (const RankCell& cell : row.layers) {
            layers.insert(cell.layer);
            all.push_back(middle(cell.wait));
        }
    }
    if (layers.size() < 2) {
        return;
    }
    const Figure median{stats::median(all), {}};
    constexpr std::size_t before = 10;
    const std::size_t room = std::max<std::size_t>(options.width > before ? options.width - before : 0, 20);
    const std::vector<std::uint32_t> order(layers.begin(), layers.end());
    for (std::size_t first = 0; first < order.size(); first += room) {
        const std::size_t last = std::min(first + room, order.size());
        page.line(padded("waiting", before) + "layer " + std::to_string(order[first]) + " to " +
                      std::to_string(order[last - 1]),
                  Tone::heading);
        for (std::size_t i = 0; i < report.ranks.size() && i < most_rows; ++i) {
            const RankRow& row = report.ranks[i];
            Line line{padded("rank " + std::to_string(row.rank), before)};
            auto cell = row.layers.begin();
            for (std::size_t at = first; at < last; ++at) {
                while (cell != row.layers.end() && cell->layer < order[at]) {
                    ++cell;
                }
                const bool there = cell != row.layers.end() && cell->layer == order[at];
                line.push_back(there ? shade({middle(cell->wait), {}}, median, heat_step) : Span(" "));
            }
            page.line(std::move(line));
        }
    }
    page.line("waiting of a rank in a collective of that layer, " + fixed(*median.value / us, 1) +
                  " us in the median: " + legend_of_shades(options.color, "25 %"),
              Tone::faint);
    page.blank();
}

void add_worst(Page& page, const RanksReport& report) {
    if (report.worst.empty()) {
        return;
    }
    TextTable table({"longest waits", "group"}, {"number", "step", "layer", "wait us", "move us"},
                    {"verdict", "ranks as they arrived"});
    for (std::size_t i = 0; i < report.worst.size() && i < 5; ++i) {
        const CollectiveWait& worst = report.worst[i];
        std::string order;
        for (std::size_t r = 0; r < worst.arrivals.size(); ++r) {
            order += (r == 0                                                            ? ""
                      : r == 4 && worst.arrivals.size() == 8 && report.ranks.size() > 8 ? " … "
                                                                                        : " ") +
                     std::to_string(worst.arrivals[r]);
        }
        table.add_row({printable(worst.brick, 40), worst.group.empty() ? "all" : printable(worst.group, 16),
                       grouped(worst.number), worst.step ? grouped(*worst.step) : "-",
                       worst.layer ? std::to_string(*worst.layer) : "-", range(worst.wait, us), range(worst.move, us),
                       word_of(worst.verdict), order});
    }
    page.table(std::move(table));
    page.blank();
}

void add_messages(Page& page, const RanksReport& report) {
    TextTable table({"rank"}, {"receives", "waiting ms", "% of run"});
    for (const RankRow& row : report.ranks) {
        if (row.messages != 0 && table.rows() < most_rows) {
            table.add_row({std::to_string(row.rank), grouped(row.messages), range(row.message_wait, ms, 2),
                           report.run_ns > 0 ? range(row.message_wait.least_ns / report.run_ns,
                                                     row.message_wait.most_ns / report.run_ns, 0.01, 1)
                                             : "n/a"});
        }
    }
    if (table.rows() != 0) {
        page.line("pipeline bubbles: receives that waited for their sends", Tone::heading);
        page.table(std::move(table));
        page.blank();
    }
    for (const TransferRow& row : report.transfers) {
        const auto end = [](std::uint32_t rank, const std::string& host) {
            return "rank " + std::to_string(rank) + (host.empty() ? "" : " (" + printable(host, 24) + ")");
        };
        page.line("kv_transfer " + end(row.from, row.from_host) + (row.directed ? " -> " : " - ") +
                  end(row.to, row.to_host) + ": " + grouped(row.transfers) + ", " + range(row.time, us) +
                  " us on average" + (row.directed ? "" : "; which one sends is not known"));
    }
    if (!report.transfers.empty()) {
        page.blank();
    }
}

void add_experts(Page& page, const RanksReport& report) {
    if (report.experts.empty()) {
        return;
    }
    std::vector<ExpertRow> rows = report.experts;
    std::stable_sort(rows.begin(), rows.end(),
                     [](const ExpertRow& a, const ExpertRow& b) { return a.imbalance > b.imbalance; });
    TextTable table({"expert load"}, {"most", "on rank", "mean", "most / mean"});
    for (std::size_t i = 0; i < rows.size() && i < 5; ++i) {
        table.add_row({"layer " + std::to_string(rows[i].layer), fixed(rows[i].most, 0), std::to_string(rows[i].rank),
                       fixed(rows[i].mean, 1), fixed(rows[i].imbalance, 2)});
    }
    page.table(std::move(table));
    page.blank();
}

} // namespace

page::Page page_of(const RanksReport& report, const TextOptions& options) {
    Page page;
    page.line(head_of(report));
    page.blank();
    for (const std::string& sentence : report.contradictions) {
        page.marked("CLOCKS CONTRADICT  ", sentence);
    }
    add_ranks(page, report);
    if (report.collectives != 0) {
        add_late(page, report);
    }
    add_groups(page, report.groups, "brick");
    add_map(page, report, options);
    add_worst(page, report);
    add_messages(page, report);
    add_experts(page, report);
    page.reasons();
    page.notes(report.notes);
    return page;
}

} // namespace plumb
