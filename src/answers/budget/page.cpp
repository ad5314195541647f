// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "analysis/brick_words.hpp"
#include "answers/budget/budget.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t name_columns = 60;

std::string name_cell(const BudgetRow& row) {
    std::string name = printable(row.name, name_columns);
    name += row.account ? std::string_view() : analysis::mark_beside_account(row.name);
    return name + (row.parent ? " +" : "") + (row.lap ? " ~" : "");
}

std::string judged(const BudgetRow& row) {
    if (!row.limited) {
        return {};
    }
    return row.verdict == Outcome::pass ? "within" : row.verdict == Outcome::fail ? "OVER" : std::string(not_available);
}

void add_head(Page& page, const BudgetReport& report) {
    page.line({Span(std::string(phase_word(report.phase)) + ' ' + grouped(report.steps) + " steps", Tone::heading),
               ", " + figure_text(report.tokens_per_step, 1, 2) + " tokens/step; budget " +
                   fixed(report.ns_per_token / 1e6, 3) + " ms/token (" + fixed(1e9 / report.ns_per_token, 1) +
                   " tok/s) = " + page.figure("budget", report.budget_ns, 1e6, 3) + " ms/step"});
    page.line("measured " + page.figure("period", report.period_ns, 1e6, 3) + " ms/step, " +
              figure_text(report.tokens_per_second, 1, 1) + " tok/s, room " +
              signed_figure_text(report.room_ns, 1e6, 3) + " ms/step");
    page.blank();
}

void add_table(Page& page, const BudgetReport& report) {
    if (report.rows.empty()) {
        return;
    }
    double largest = 0;
    for (const BudgetRow& row : report.rows) {
        largest = std::max(largest, row.step_ns.value.value_or(0));
    }
    const int decimals = decimals_for(largest / 1e3, 4, 1, 3);
    TextTable table({"brick"}, {"us/step", "self us", "us/token", "% of budget", "may take us", "room us"}, {"limit"});
    for (const BudgetRow& row : report.rows) {
        const auto us = [&](const Figure& figure) {
            return page.figure(printable(row.name, name_columns), figure, 1e3, decimals);
        };
        page.reason(printable(row.name, name_columns), row.room_ns);
        table.add_row({name_cell(row), us(row.step_ns), us(row.self_ns), us(row.token_ns),
                       figure_text(row.budget_share, 0.01, 1), us(row.allowed_ns),
                       signed_figure_text(row.room_ns, 1e3, decimals), judged(row)});
    }
    page.table(std::move(table));
    page.line(
        "may take: its limit where one was given, else its part of the budget when everything shrinks or grows alike",
        Tone::faint);
    const auto has_account_row = [&report](std::string_view name) {
        return std::any_of(report.rows.begin(), report.rows.end(),
                           [name](const BudgetRow& row) { return row.account && row.name == name; });
    };
    for (const auto& [name, legend] : {std::pair(analysis::leaf_calls_in_marked, analysis::leaf_calls_in_marked_legend),
                                       std::pair(analysis::bricks_outside, analysis::bricks_outside_legend),
                                       std::pair(analysis::bricks_elsewhere, analysis::bricks_elsewhere_legend)}) {
        if (has_account_row(name)) {
            page.line(legend, Tone::faint);
        }
    }
    if (has_account_row(idle_in_bricks)) {
        page.line("idle in bricks: bricks were off the CPU for a part of their time: that part is in their rows and in "
                  "idle, and taken off once",
                  Tone::faint);
    }
}

void add_verdict(Page& page, Outcome verdict, const std::string& sentence) {
    page.marked(verdict == Outcome::pass   ? "WITHIN  "
                : verdict == Outcome::fail ? "OVER  "
                                           : "N/A  ",
                sentence, verdict == Outcome::pass ? Tone::plain : Tone::warning);
}

std::string overrun(const std::string& what, const Figure& taken, const Figure& allowed, const Figure& room) {
    if (!room.value) {
        return what + ": " + room.reason;
    }
    return what + ": " + figure_text(taken, 1e3, 3) + " us/step of " + figure_text(allowed, 1e3, 3) + " us, " +
           fixed(std::abs(*room.value) / 1e3, 3) + (*room.value < 0 ? " us too much" : " us of room");
}

} // namespace

page::Page page_of(const BudgetReport& report, const TextOptions&) {
    Page page;
    add_head(page, report);
    add_table(page, report);
    page.reasons();
    page.notes(report.notes);
    page.blank();
    add_verdict(page, report.period_verdict, overrun("step", report.period_ns, report.budget_ns, report.room_ns));
    for (const BudgetRow& row : report.rows) {
        if (row.limited) {
            add_verdict(page, row.verdict, overrun(row.name, row.step_ns, row.allowed_ns, row.room_ns));
        }
    }
    return page;
}

} // namespace plumb
