// SPDX-License-Identifier: Apache-2.0
// A comparison for the comment of a pull request: no file names and no host, what must be read first, the rest folded.
#include "answers/compare/compare.hpp"
#include "answers/compare/words.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t cell_columns = 200;

std::string cell(std::string_view text) { return markdown_text(printable(text, cell_columns)); }

void put_line(std::string& out, std::initializer_list<std::string> cells) {
    out += "|";
    for (const std::string& text : cells) {
        out += " " + text + " |";
    }
    out += "\n";
}

void put_rows(std::string& out, const Comparison& comparison, Phase phase, bool changed) {
    for (const CompareRow& row : comparison.rows) {
        const bool differs = row.verdict == Verdict::fast || row.verdict == Verdict::slow;
        const bool first = row.subject == CompareSubject::step || (row.subject == CompareSubject::brick && differs);
        if (row.phase != phase || first != changed || row.reason == too_small) {
            continue;
        }
        const Change& change = judged_change(row);
        put_line(out,
                 {cell(subject_text(row)), subject_word(row.subject), microseconds(row.base_ns.value.value_or(0)),
                  microseconds(row.changed_ns.value.value_or(0)), percent_text(change.estimate), interval_text(change),
                  std::string(differs ? "**" : "") + word_of(row.verdict) + (differs ? "**" : "")});
    }
}

void put_heading(std::string& out) {
    out += "| row | of | base us | new us | change | interval | verdict |\n|---|---|--:|--:|--:|--:|---|\n";
}

void put_phase(std::string& out, const Comparison& comparison, const CompareRow& step) {
    out += "\n### " + cell(headline(comparison, step)) + "\n\n";
    put_heading(out);
    put_rows(out, comparison, step.phase, true);
    out += "\n<details><summary>All rows</summary>\n\n";
    put_heading(out);
    put_rows(out, comparison, step.phase, false);
    for (const Attribution& attribution : comparison.attributions) {
        if (attribution.phase != step.phase) {
            continue;
        }
        out += "\nChange of a step by brick, us:\n\n| brick | base | new | change |\n|---|--:|--:|--:|\n";
        for (const Contribution& part : attribution.parts) {
            put_line(out, {cell(part.name), microseconds(part.base_ns), microseconds(part.changed_ns),
                           signed_microseconds(part.change_ns)});
        }
        put_line(out, {"step", microseconds(attribution.base_ns), microseconds(attribution.changed_ns),
                       signed_microseconds(attribution.change_ns)});
    }
    out += "\n</details>\n";
}

} // namespace

std::string markdown_of(const Comparison& comparison) {
    std::string out = "## plumb compare: " + runs_text(comparison) + "\n";
    for (const GateResult& gate : comparison.gates) {
        out +=
            "\n- **" + std::string(word_of(gate.outcome)) + "** " + cell(gate.gate.text) + ": " + cell(gate.sentence);
    }
    if (!comparison.gates.empty()) {
        out += "\n";
    }
    if (!comparison.comparable) {
        out += "\n**Not comparable**: the runs differ in what must be equal.\n";
    }
    if (!comparison.differences.empty()) {
        out += "\n| field | base | new | |\n|---|---|---|---|\n";
        for (const KeyDifference& difference : comparison.differences) {
            put_line(out, {cell(difference.field), cell(difference.base), cell(difference.changed),
                           difference.ignored ? "ignored" : "differs"});
        }
    }
    for (const CompareRow& row : comparison.rows) {
        if (row.subject == CompareSubject::step) {
            put_phase(out, comparison, row);
        }
    }
    return out;
}

} // namespace plumb
