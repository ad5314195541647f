// SPDX-License-Identifier: Apache-2.0
// A comparison for the comment of a pull request: no file names and no host, what must be read first, the rest folded.
#include <algorithm>
#include <utility>

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
                 {cell(subject_text(row)), kind_text(row), microseconds(row.base_ns.value.value_or(0)),
                  microseconds(row.changed_ns.value.value_or(0)), percent_text(change.estimate), interval_text(change),
                  std::string(differs ? "**" : "") + word_of(row.verdict) + (differs ? "**" : "") +
                      (row.by_own_change ? " " + cell("*") : "")});
    }
}

void put_heading(std::string& out) {
    out += "| row | of | base us | new us | change | interval | verdict |\n|---|---|--:|--:|--:|--:|---|\n";
}

/// A mark is on a brick, and bricks with a verdict that says something stand in the first table.
void put_legend(std::string& out, const Comparison& comparison, Phase phase) {
    out += "\n" + cell(means_text(comparison)) + "\n";
    if (std::any_of(comparison.rows.begin(), comparison.rows.end(),
                    [phase](const CompareRow& row) { return row.phase == phase && row.by_own_change; })) {
        out += "\n" + cell(own_change_legend) + "\n";
    }
}

/// How a run is called where no file may be named: "base run 2". Empty: `text` begins with no run's name.
std::string take_name(std::string_view& text, const Comparison& comparison) {
    const std::string* longest = nullptr;
    std::string words;
    for (const auto& [side, runs] :
         {std::pair("base run ", &comparison.base), std::pair("new run ", &comparison.changed)}) {
        for (std::size_t i = 0; i < runs->size(); ++i) {
            const std::string& name = (*runs)[i].name;
            const std::string_view rest = text.starts_with(name) ? text.substr(name.size()) : std::string_view{};
            const bool whole = rest.starts_with(": ") || rest.starts_with(", ");
            if (whole && (longest == nullptr || name.size() > longest->size())) {
                longest = &name;
                words = side + std::to_string(i + 1);
            }
        }
    }
    text.remove_prefix(longest != nullptr ? longest->size() : 0);
    return words;
}

/// "a.plumb, b.plumb: …" -> "base run 1, new run 2: …".
std::string without_file_names(std::string_view note, const Comparison& comparison) {
    std::string out;
    for (;;) {
        const std::string name = take_name(note, comparison);
        if (name.empty()) {
            break;
        }
        out += name + std::string(note.substr(0, 2));
        const bool last = note[0] == ':';
        note.remove_prefix(2);
        if (last) {
            break;
        }
    }
    out += note;
    // A file beside a recording is named like it.
    for (const auto* runs : {&comparison.base, &comparison.changed}) {
        for (const ComparedRun& run : *runs) {
            for (std::size_t at = 0;
                 run.name.ends_with(".plumb") && (at = out.find(run.name, at)) != std::string::npos;) {
                out.replace(at, run.name.size(), "its file");
            }
        }
    }
    return out;
}

void put_notes(std::string& out, const Comparison& comparison) {
    out += comparison.notes.empty() ? "" : "\n";
    for (const std::string& note : comparison.notes) {
        out += "- note: " + markdown_text(without_file_names(note, comparison)) + "\n";
    }
}

void put_phase(std::string& out, const Comparison& comparison, const CompareRow& step) {
    out += "\n### " + cell(headline(comparison, step)) + "\n\n";
    put_heading(out);
    put_rows(out, comparison, step.phase, true);
    put_legend(out, comparison, step.phase);
    out += "\n<details><summary>All rows</summary>\n\n";
    put_heading(out);
    put_rows(out, comparison, step.phase, false);
    for (const Attribution& attribution : comparison.attributions) {
        if (attribution.phase != step.phase) {
            continue;
        }
        out += "\n" + cell(attribution_text(attribution)) + "\n\n| brick | base | new | change |\n|---|--:|--:|--:|\n";
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
    put_notes(out, comparison);
    return out;
}

} // namespace plumb
