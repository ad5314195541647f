// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "plumb/budget.hpp"
#include "render/style.hpp"
#include "render/text_table.hpp"

namespace plumb {

namespace {

using namespace render;

constexpr std::string_view absent = "n/a";
constexpr std::size_t sentence_columns = 1000;
constexpr std::size_t name_columns = 60;

std::string signed_cell(double value, int decimals) {
    return value < 0 ? "-" + fixed(-value, decimals) : fixed(value, decimals);
}

std::string cell(const Figure& figure, double unit, int decimals) {
    return figure.value ? signed_cell(*figure.value / unit, decimals) : std::string(absent);
}

std::string with_sign(const Figure& figure, double unit, int decimals) {
    return (figure.value && *figure.value > 0 ? "+" : "") + cell(figure, unit, decimals);
}

std::string name_cell(const BudgetRow& row) {
    return printable(row.name, name_columns) + (row.parent ? " +" : row.lap ? " ~" : "");
}

std::string judged(const BudgetRow& row) {
    if (!row.limited) {
        return {};
    }
    return row.verdict == Outcome::pass ? "within" : row.verdict == Outcome::fail ? "OVER" : std::string(absent);
}

void append_head(std::string& out, const BudgetReport& report, const Style& style) {
    out += style.heading;
    out += std::string(phase_word(report.phase)) + ' ' + grouped(report.steps) + " steps";
    out += style.plain;
    out += ", " + cell(report.tokens_per_step, 1, 2) + " tokens/step; budget " + fixed(report.ns_per_token / 1e6, 3) +
           " ms/token (" + fixed(1e9 / report.ns_per_token, 1) + " tok/s) = " + cell(report.budget_ns, 1e6, 3) +
           " ms/step\n";
    out += "measured " + cell(report.period_ns, 1e6, 3) + " ms/step, " + cell(report.tokens_per_second, 1, 1) +
           " tok/s, room " + with_sign(report.room_ns, 1e6, 3) + " ms/step\n\n";
}

void append_table(std::string& out, const BudgetReport& report, const Style& style) {
    if (report.rows.empty()) {
        return;
    }
    double largest = 0;
    for (const BudgetRow& row : report.rows) {
        largest = std::max(largest, row.step_ns.value.value_or(0));
    }
    const int decimals = decimals_for(largest / 1e3, 4, 1, 3);
    TextTable table;
    table.add_column("brick", TextTable::Align::left);
    for (const char* heading : {"us/step", "self us", "us/token", "% of budget", "may take us", "room us"}) {
        table.add_column(heading, TextTable::Align::right);
    }
    table.add_column("limit", TextTable::Align::left);
    for (const BudgetRow& row : report.rows) {
        table.add_row({name_cell(row), cell(row.step_ns, 1e3, decimals), cell(row.self_ns, 1e3, decimals),
                       cell(row.token_ns, 1e3, decimals), cell(row.percent, 1, 1), cell(row.allowed_ns, 1e3, decimals),
                       with_sign(row.room_ns, 1e3, decimals), judged(row)});
    }
    table.append_to(out, style.heading, style.plain);
    out += style.faint;
    out +=
        "may take: its limit where one was given, else its part of the budget when everything shrinks or grows alike\n";
    out += style.plain;
}

void append_reasons(std::string& out, const BudgetReport& report, const Style& style) {
    std::map<std::string, std::string> reasons; // to the first that has it
    const auto note = [&reasons](const std::string& what, const Figure& figure) {
        if (!figure.value) {
            reasons.try_emplace(figure.reason, what);
        }
    };
    note("budget", report.budget_ns);
    note("period", report.period_ns);
    for (const BudgetRow& row : report.rows) {
        note(row.name, row.step_ns);
        note(row.name, row.self_ns);
        note(row.name, row.room_ns);
    }
    out += style.faint;
    for (const auto& [reason, what] : reasons) {
        out += "n/a  " + printable(what, name_columns) + ": " + printable(reason, sentence_columns) + '\n';
    }
    out += style.plain;
    for (const std::string& sentence : report.notes) {
        out += "note  " + printable(sentence, sentence_columns) + '\n';
    }
}

void append_line(std::string& out, Outcome verdict, const std::string& words, const Style& style) {
    out += verdict == Outcome::pass ? std::string_view() : style.warning;
    out += verdict == Outcome::pass ? "WITHIN  " : verdict == Outcome::fail ? "OVER  " : "N/A  ";
    out += style.plain;
    out += printable(words, sentence_columns) + '\n';
}

std::string overrun(const std::string& what, const Figure& taken, const Figure& allowed, const Figure& room) {
    if (!room.value) {
        return what + ": " + room.reason;
    }
    return what + ": " + cell(taken, 1e3, 3) + " us/step of " + cell(allowed, 1e3, 3) + " us, " +
           signed_cell(std::abs(*room.value) / 1e3, 3) + (*room.value < 0 ? " us too much" : " us of room");
}

} // namespace

std::string render_text(const BudgetReport& report, const TextOptions& options) {
    const Style& style = options.color ? colored : uncolored;
    std::string out;
    append_head(out, report, style);
    append_table(out, report, style);
    append_reasons(out, report, style);
    out += '\n';
    append_line(out, report.period_verdict, overrun("step", report.period_ns, report.budget_ns, report.room_ns), style);
    for (const BudgetRow& row : report.rows) {
        if (row.limited) {
            append_line(out, row.verdict, overrun(row.name, row.step_ns, row.allowed_ns, row.room_ns), style);
        }
    }
    return out;
}

} // namespace plumb
