// SPDX-License-Identifier: Apache-2.0
// A table of bricks, what no scope covers, how the clocks lie, and the verdict.
#include <cmath>

#include "answers/audit/audit.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 40;
constexpr std::size_t most_leftovers = 8;

std::string percent(const Figure& figure, int decimals = 1) { return figure_text(figure, 0.01, decimals); }
std::string signed_percent(const Figure& figure) { return signed_figure_text(figure, 0.01, 1); }

void add_bricks(Page& page, const AuditReport& report) {
    TextTable table({"brick", "source"}, {"calls", "matched", "ops", "ours us", "span us", "sum us", "error us", "p5",
                                          "p50", "p95", "error %", "% covered"});
    for (const AuditRow& row : report.rows) {
        const std::string brick = printable(row.brick, name_columns);
        table.add_row(
            {brick, printable(row.source, name_columns), grouped(row.calls), grouped(row.matched),
             grouped(row.operations), page.figure(brick, row.ours_ns, ns_per_us, 2),
             page.figure(brick, row.span_ns, ns_per_us, 2), page.figure(brick, row.sum_ns, ns_per_us, 2),
             signed_figure_text(row.error_ns, ns_per_us, 2), signed_figure_text(row.least_error_ns, ns_per_us, 2),
             signed_figure_text(row.median_error_ns, ns_per_us, 2), signed_figure_text(row.most_error_ns, ns_per_us, 2),
             signed_percent(row.error), percent(row.covered)});
    }
    page.table(std::move(table));
    page.reasons();
}

void add_lanes(Page& page, const AuditReport& report) {
    for (const AuditLane& lane : report.lanes) {
        if (lane.stream.empty()) {
            page.marked("NOT IN TRACE ", printable(lane.name, name_columns) + ": " + lane.offset_ns.reason);
            continue;
        }
        page.marked("clock  ",
                    printable(lane.name, name_columns) + " lies on " + printable(lane.stream, name_columns) + ": " +
                        grouped(lane.agreeing) + " of " + grouped(lane.ends) + " scopes end with an operation, " +
                        figure_text(lane.residual_ns, ns_per_us, 2) + " us away; drift " +
                        signed_figure_text(lane.drift_ppm, 1, 2) + " ppm; steps lie within " +
                        figure_text(lane.placement_ns, ns_per_us, 2) + " us of that",
                    Tone::plain);
    }
}

void add_left(Page& page, const AuditReport& report) {
    std::size_t shown = 0;
    for (const AuditLeftover& row : report.leftovers) {
        if (shown++ == most_leftovers) {
            break;
        }
        page.marked("NOT COVERED ", grouped(row.operations) + " x " + printable(row.name, name_columns) + ", " +
                                        fixed(row.ns / ns_per_us, 1) + " us on " + printable(row.stream, name_columns));
    }
    if (report.leftovers.size() > most_leftovers) {
        page.note(grouped(report.leftovers.size() - most_leftovers) + " more names are not covered; --json has them");
    }
}

const AuditRow* worst_of(const AuditReport& report) {
    for (const AuditRow& row : report.rows) {
        if (row.brick == report.worst && row.source == report.worst_source && row.error.value) {
            return &row;
        }
    }
    return nullptr;
}

std::string counts_of(const AuditReport& report) {
    std::string text = grouped(report.inside) + " of " + grouped(report.operations) + " operations in our scopes, " +
                       grouped(report.not_covered) + " between them";
    if (report.outside != 0) {
        text += ", " + grouped(report.outside) + " in steps that were not timed";
    }
    if (report.elsewhere != 0) {
        text += ", " + grouped(report.elsewhere) + " on streams without scopes";
    }
    return text;
}

} // namespace

page::Page page_of(const AuditReport& report, const TextOptions&) {
    Page page;
    if (!report.fits) {
        page.marked("NO FIT ", report.reason);
        page.notes(report.notes);
        return page;
    }
    add_bricks(page, report);
    page.blank();
    add_lanes(page, report);
    add_left(page, report);
    page.marked("counts  ", counts_of(report), Tone::plain);
    const AuditRow* worst = worst_of(report);
    std::string verdict = "all bricks " + signed_percent(report.error) + " % against " + report.tool;
    if (worst != nullptr) {
        verdict += "; worst " + printable(worst->brick, name_columns) + " by " +
                   printable(worst->source, name_columns) + " " + signed_percent(worst->error) + " % (" +
                   signed_figure_text(worst->error_ns, ns_per_us, 2) + " us a call)";
    }
    verdict += "; not covered " + percent(report.uncovered) + " % of the trace's time";
    if (report.max_error) {
        verdict += "; allowed " + fixed(*report.max_error * 100, 1) + " %";
    }
    page.marked(report.verdict == Outcome::fail   ? "BEYOND "
                : report.verdict == Outcome::pass ? "audit  "
                                                  : "UNDECIDED ",
                verdict, report.verdict == Outcome::pass ? Tone::plain : Tone::warning);
    page.notes(report.notes);
    return page;
}

} // namespace plumb
