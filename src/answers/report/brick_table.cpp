// SPDX-License-Identifier: Apache-2.0
#include "answers/report/brick_table.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/brick_words.hpp"
#include "recording/import_notes.hpp"

namespace plumb::answers {

using namespace page;

namespace {

constexpr std::size_t name_columns = 40;

} // namespace

std::string calls_cell(double calls) { return fixed(calls, calls == std::floor(calls) ? 0 : 2); }

namespace {

constexpr std::string_view not_applicable = "-";

struct FigureColumn {
    std::string_view heading;
    Figure (*of)(const Row&);
    double unit; // one printed unit in the figure's own
    int digits, least, most;
    bool always; // else only where some row has a value
};

constexpr double per_cent = 0.01;

const FigureColumn time_columns[] = {
    {"p50 us", [](const Row& row) { return row.time.p50_ns; }, ns_per_us, 4, 1, 3, true},
    {"p90 us", [](const Row& row) { return row.time.p90_ns; }, ns_per_us, 4, 1, 3, true},
};
const FigureColumn rate_columns[] = {
    {"% barrier", [](const Row& row) { return row.barrier_wait_share; }, per_cent, 3, 1, 1, false},
    {"GB/s", [](const Row& row) { return row.gigabytes_per_second; }, 1, 3, 1, 3, true},
    {"TFLOP/s", [](const Row& row) { return row.teraflops; }, 1, 3, 2, 5, false},
    {"% roof", [](const Row& row) { return row.roof.share; }, per_cent, 3, 1, 1, false},
};
constexpr std::size_t barrier_column = 0, roof_column = 3; // of rate_columns

/// One column of a phase's table: which figures, how many decimals.
struct FigureCells {
    const FigureColumn* column;
    int decimals;
    bool any;

    FigureCells(const FigureColumn& which, const std::vector<const Row*>& rows) : column(&which), any(which.always) {
        double largest = 0;
        for (const Row* row : rows) {
            if (const Figure figure = which.of(*row); figure.value) {
                largest = std::max(largest, *figure.value / which.unit);
                any = true;
            }
        }
        decimals = decimals_for(largest, which.digits, which.least, which.most);
    }
    [[nodiscard]] std::string cell(const Row& row) const {
        return figure_text(column->of(row), column->unit, decimals);
    }
};

/// What a row stands for in a step; rows that only some steps or replays give have few samples.
double weight_of(const Row& row) {
    return row.basis != RowBasis::steps && row.basis_steps != 0
               ? row.sum_per_step_ns * static_cast<double>(row.basis_steps)
               : row.time.total_ns;
}

double milliseconds_per_step(const PhaseSummary& phase, double total_ns) {
    return phase.steps == 0 ? 0 : total_ns / static_cast<double>(phase.steps) / ns_per_ms;
}

/// Everything that decides what the table of one phase looks like.
struct Layout {
    std::vector<FigureCells> times, rates;
    int sum_decimals;
    bool limits; // some row has a known bottleneck
    bool known_by;

    explicit Layout(const PhaseRows& phase) : known_by(!phase.known_by.empty()) {
        for (const FigureColumn& column : time_columns) {
            times.emplace_back(column, phase.rows);
        }
        for (const FigureColumn& column : rate_columns) {
            if (FigureCells cells(column, phase.rows); cells.any) {
                rates.push_back(cells);
            }
        }
        double largest = phase.phase != nullptr ? milliseconds_per_step(*phase.phase, phase.phase->wall.period_ns) : 0;
        for (const Row* row : phase.rows) {
            const double sum = phase.phase != nullptr ? row->sum_per_step_ns : row->time.total_ns;
            largest = std::max(largest, sum / ns_per_ms);
        }
        sum_decimals = decimals_for(largest, 4, 2, 6);
        limits = std::any_of(phase.rows.begin(), phase.rows.end(),
                             [](const Row* row) { return row->roof.bottleneck != Bottleneck::unknown; });
    }
};

TextTable table_with_headings(const PhaseRows& phase, const Layout& layout) {
    using Align = TextTable::Align;
    const bool steps = phase.phase != nullptr;
    TextTable table;
    table.add_column("brick", Align::left);
    table.add_column(steps ? "calls/step" : "calls", Align::right);
    for (const FigureCells& cells : layout.times) {
        table.add_column(std::string(cells.column->heading), Align::right);
    }
    table.add_column(steps ? "sum/step ms" : "sum ms", Align::right);
    if (steps) {
        table.add_column("% wall", Align::right);
    }
    for (const FigureCells& cells : layout.rates) {
        table.add_column(std::string(cells.column->heading), Align::right);
    }
    if (layout.limits) {
        table.add_column("limit", Align::left);
    }
    if (!phase.known_by.empty()) {
        table.add_column("known by", Align::left);
    }
    table.add_column("source", Align::left);
    return table;
}

void add_brick(TextTable& table, const Row& row, const PhaseRows& phase, const Layout& layout) {
    const bool steps = phase.phase != nullptr;
    std::vector<std::string> cells{marked_name(row), steps ? calls_cell(row.calls_per_step) : grouped(row.time.count)};
    for (const FigureCells& column : layout.times) {
        cells.push_back(column.cell(row));
    }
    cells.push_back(fixed((steps ? row.sum_per_step_ns : row.time.total_ns) / ns_per_ms, layout.sum_decimals));
    if (steps) {
        cells.push_back(figure_text(row.wall_share, per_cent, 1));
    }
    for (const FigureCells& column : layout.rates) {
        cells.push_back(column.cell(row));
    }
    if (layout.limits) {
        cells.emplace_back(row.roof.bottleneck == Bottleneck::unknown ? "?" : bottleneck_word(row.roof.bottleneck));
    }
    if (!phase.known_by.empty()) {
        const auto known = phase.known_by.find(row.key.name);
        cells.push_back(known == phase.known_by.end() ? std::string("unknown")
                                                      : printable(known->second, name_columns));
    }
    cells.push_back(printable(row.source, name_columns));
    table.add_row(std::move(cells));
}

/// A row of the wall account: it has a sum and a share, nothing else.
void add_remainder(TextTable& table, const char* name, const PhaseSummary& phase, double total_ns,
                   const Layout& layout) {
    std::vector<std::string> cells{name};
    cells.insert(cells.end(), 1 + layout.times.size(), std::string(not_applicable));
    cells.push_back(fixed(milliseconds_per_step(phase, total_ns), layout.sum_decimals));
    const double period = phase.wall.period_ns;
    cells.push_back(period > 0 ? fixed(100 * total_ns / period, 1) : std::string(not_available));
    cells.insert(cells.end(), layout.rates.size() + (layout.limits ? 1 : 0) + (layout.known_by ? 1 : 0),
                 std::string(not_applicable));
    table.add_row(std::move(cells));
}

/// Per step; 0 where it is less than times can tell.
double in_marked_rows_ns(const PhaseRows& phase) {
    double ns = phase.leaf_calls_ns;
    for (const Row* row : phase.rows) {
        ns -= row->parent || row->lap ? 0 : row->sum_per_step_ns;
    }
    return ns < 1 ? 0 : ns;
}

void add_remainders(TextTable& table, const PhaseRows& rows, const Layout& layout) {
    const PhaseSummary& phase = *rows.phase;
    const WallAccount& wall = phase.wall;
    const bool host = analysis::wall_is_of_the_host(phase);
    for (const auto& [name, ns] :
         {std::pair(analysis::leaf_calls_in_marked, in_marked_rows_ns(rows) * static_cast<double>(phase.steps)),
          std::pair(analysis::bricks_outside, wall.bricks_outside_ns),
          std::pair(analysis::bricks_elsewhere, wall.bricks_elsewhere_ns), std::pair("overlap", wall.overlap_ns)}) {
        if (ns > 0) {
            add_remainder(table, name, phase, ns, layout);
        }
    }
    add_remainder(table, host ? "host: unattributed" : "unattributed", phase, wall.unattributed_ns, layout);
    if (wall.lap_union_ns > 0) {
        add_remainder(table, "  of it in laps", phase, wall.lap_union_ns, layout);
    }
    add_remainder(table, host ? "host: idle" : "idle", phase, wall.idle_ns, layout);
}

void add_reasons(Page& page, const PhaseRows& phase, const FigureCells& cells) {
    std::map<std::string, std::size_t> reasons;
    std::size_t rows = 0;
    for (const Row* row : phase.rows) {
        if (const Figure figure = cells.column->of(*row); !figure.value) {
            ++reasons[figure.reason.empty() ? "no reason was given" : figure.reason];
            ++rows;
        }
    }
    if (rows == 0) {
        return;
    }
    const auto most = std::max_element(reasons.begin(), reasons.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    std::string line = "n/a  " + std::string(cells.column->heading) + ": " + printable(most->first, 200);
    if (most->second < rows) {
        line += "; " + grouped(rows - most->second) +
                (rows - most->second == 1 ? " more row for a reason" : " more rows for reasons") +
                " like it (all of them with --json)";
    } else if (rows > 1) {
        line += " (" + grouped(rows) + " rows)";
    }
    page.line(line, Tone::faint);
}

/// Where no row has a share of its roofline although some state their work, one line says why.
void add_missing_roof(Page& page, const PhaseRows& phase) {
    for (const Row* row : phase.rows) {
        if (row->gigabytes_per_second.value || row->teraflops.value) {
            page.line("n/a  % roof: " + printable(row->roof.share.reason, 200), Tone::faint);
            return;
        }
    }
}

/// Time off the CPU inside a brick is in the brick's sum and in idle: the column then adds up to more than the period.
bool counts_idle_twice(const PhaseRows& phase) {
    return phase.phase != nullptr && phase.phase->wall.bricks_idle_ns > 0.01 * phase.phase->wall.period_ns;
}

void add_basis_legend(Page& page, const PhaseRows& phase) {
    const Row* timed = nullptr;
    const Row* inside = nullptr;
    bool partly = false;
    for (const Row* row : phase.rows) {
        timed = row->basis == RowBasis::timed_steps ? row : timed;
        inside = row->basis == RowBasis::replays ? row : inside;
        partly = partly || (row->basis == RowBasis::replays && row->sites_timed < row->sites);
    }
    if (timed != nullptr && timed->basis_steps != 0) {
        page.line("*  a device queue that is timed in some steps only: calls and sums are per timed step (" +
                      grouped(timed->basis_steps) + ")",
                  Tone::faint);
    }
    if (inside != nullptr) {
        page.line(phase.phase != nullptr
                      ? "@  inside captured graphs: percentiles are of the replays that were sampled, "
                        "sums are replays times the mean of each site"
                      : "@  inside captured graphs: calls, sums and percentiles are of the replays "
                        "that were sampled",
                  Tone::faint);
    }
    if (partly) {
        page.line("@- the same, but some sites were never timed: the sum is of the others alone", Tone::faint);
    }
}

void add_legend(Page& page, const PhaseRows& phase, const Layout& layout) {
    const auto any = [&phase](bool Row::*mark) {
        return std::any_of(phase.rows.begin(), phase.rows.end(), [mark](const Row* row) { return row->*mark; });
    };
    if (any(&Row::parent)) {
        page.line("+  holds other bricks: their time is in its sum too", Tone::faint);
    }
    if (any(&Row::lap)) {
        page.line("~  made of laps: also holds the gap to the next one, so it does not count as covered", Tone::faint);
    }
    add_basis_legend(page, phase);
    if (phase.phase != nullptr) {
        const WallAccount& wall = phase.phase->wall;
        for (const auto& [ns, legend] : {std::pair(in_marked_rows_ns(phase), analysis::leaf_calls_in_marked_legend),
                                         std::pair(wall.bricks_outside_ns, analysis::bricks_outside_legend),
                                         std::pair(wall.bricks_elsewhere_ns, analysis::bricks_elsewhere_legend)}) {
            if (ns > 0) {
                page.line(legend, Tone::faint);
            }
        }
    }
    if (counts_idle_twice(phase)) {
        page.line("bricks were off the CPU for a part of their time: that part is in their sums and in idle",
                  Tone::faint);
    }
    for (const FigureCells& cells : layout.times) {
        add_reasons(page, phase, cells);
    }
    bool roof_shown = false;
    for (const FigureCells& cells : layout.rates) {
        add_reasons(page, phase, cells);
        roof_shown = roof_shown || cells.column == &rate_columns[roof_column];
        if (cells.column == &rate_columns[barrier_column]) {
            page.line("% barrier: of the brick's time the thread waited there for the others of its team: work that is "
                      "shared unequally",
                      Tone::faint);
        }
    }
    if (!roof_shown) {
        add_missing_roof(page, phase);
    }
    if (layout.known_by) {
        page.line("known by: of the brick's time in the whole trace; weak: the kernel's name says little", Tone::faint);
    }
    if (layout.limits) {
        page.line("limit: memory or compute from 50 % of that peak on; cache: what it moves in a step fits the "
                  "last-level cache, so shares may exceed 100 %; latency: calls about as short as their floor or "
                  "launch; ?: none of these explains its time",
                  Tone::faint);
    }
}

} // namespace

PhaseRows rows_of(const Report& report, const PhaseSummary* summary) {
    PhaseRows found;
    found.phase = summary;
    found.leaf_calls_ns = summary != nullptr ? analysis::leaf_calls_ns(report, summary->phase) : 0;
    for (const auto& [key, text] : report.description) {
        if (const std::string_view brick = recording::known_brick(key); !brick.empty()) {
            found.known_by.emplace(brick, text);
        }
    }
    const Phase phase = summary != nullptr ? summary->phase : Phase::none;
    for (const Row& row : report.bricks) {
        if (row.key.phase == phase) {
            found.rows.push_back(&row);
        }
    }
    std::stable_sort(found.rows.begin(), found.rows.end(),
                     [](const Row* a, const Row* b) { return weight_of(*a) > weight_of(*b); });
    return found;
}

void add_brick_table(Page& page, const PhaseRows& phase) {
    const Layout layout(phase);
    TextTable table = table_with_headings(phase, layout);
    for (const Row* row : phase.rows) {
        add_brick(table, *row, phase, layout);
    }
    if (phase.phase != nullptr) {
        add_remainders(table, phase, layout);
    }
    page.table(std::move(table));
    add_legend(page, phase, layout);
}

} // namespace plumb::answers
