// SPDX-License-Identifier: Apache-2.0
// A comparison as people read it: for each phase the rows and what made up the change of a step, then gates and conditions.
#include "answers/compare/compare.hpp"
#include "answers/compare/words.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t line_columns = 10000;
constexpr std::size_t name_columns = 40;

void add_line(Page& page, const std::string& text, Tone tone = Tone::plain) {
    page.line(printable(text, line_columns), tone);
}

void add_head(Page& page, const Comparison& comparison) {
    add_line(page, runs_text(comparison));
    for (const KeyDifference& difference : comparison.differences) {
        add_line(page,
                 std::string(difference.ignored ? "differs (ignored)  " : "differs  ") + difference.field + ": " +
                     difference.base + " -> " + difference.changed,
                 difference.ignored ? Tone::faint : Tone::warning);
    }
    if (!comparison.comparable) {
        add_line(page,
                 "NOT COMPARABLE: the runs differ in what must be equal; record them alike, or say --ignore-key FIELD "
                 "where that is what you compare");
    }
}

void add_rows(Page& page, const Comparison& comparison, Phase phase) {
    TextTable table({"", "of"}, {"base us", "new us", "change", "interval", "noise"}, {"verdict"});
    bool own = false;
    for (const CompareRow& row : comparison.rows) {
        if (row.phase != phase || row.reason == too_small) {
            continue;
        }
        own = own || row.by_own_change;
        const Change& change = judged_change(row);
        const Figure& noise = row.base_noise;
        table.add_row({printable(subject_text(row), name_columns), kind_text(row),
                       microseconds(row.base_ns.value.value_or(0)), microseconds(row.changed_ns.value.value_or(0)),
                       percent_text(change.estimate), interval_text(change),
                       noise.value ? percent_text(noise).substr(1) : std::string(not_available),
                       word_of(row.verdict) + std::string(row.by_own_change ? " *" : "")});
    }
    page.table(std::move(table), Tone::faint);
    page.line(means_text(comparison), Tone::faint);
    if (own) {
        page.line(own_change_legend);
    }
}

void add_attributions(Page& page, const Comparison& comparison, Phase phase) {
    for (const Attribution& attribution : comparison.attributions) {
        if (attribution.phase != phase) {
            continue;
        }
        page.line(attribution_text(attribution));
        TextTable table({""}, {"base", "new", "change"});
        for (const Contribution& part : attribution.parts) {
            table.add_row({printable(part.name, name_columns), microseconds(part.base_ns),
                           microseconds(part.changed_ns), signed_microseconds(part.change_ns)});
        }
        table.add_row({"step", microseconds(attribution.base_ns), microseconds(attribution.changed_ns),
                       signed_microseconds(attribution.change_ns)});
        page.table(std::move(table), Tone::faint);
    }
}

void add_gates(Page& page, const Comparison& comparison) {
    if (!comparison.gates.empty()) {
        page.blank();
    }
    for (const GateResult& gate : comparison.gates) {
        add_line(page, std::string("gate ") + word_of(gate.outcome) + "  " + gate.gate.text + ": " + gate.sentence,
                 gate.outcome == GateOutcome::passed ? Tone::plain : Tone::warning);
    }
}

/// Clocks and load of each run, where they are known.
void add_conditions(Page& page, const char* side, const std::vector<ComparedRun>& runs) {
    for (const ComparedRun& run : runs) {
        std::string text;
        for (const auto& [key, value] : run.conditions) {
            text += (text.empty() ? "" : ", ") + key + " " + value;
        }
        if (!text.empty()) {
            add_line(page, std::string(side) + "  " + run.name + ": " + text);
        }
    }
}

} // namespace

page::Page page_of(const Comparison& comparison, const TextOptions&) {
    Page page;
    add_head(page, comparison);
    for (const CompareRow& row : comparison.rows) {
        if (row.subject == CompareSubject::step) {
            page.blank();
            add_line(page, headline(comparison, row), Tone::heading);
            add_rows(page, comparison, row.phase);
            add_attributions(page, comparison, row.phase);
        }
    }
    add_gates(page, comparison);
    page.blank();
    add_conditions(page, "base", comparison.base);
    add_conditions(page, "new ", comparison.changed);
    page.notes(comparison.notes);
    return page;
}

} // namespace plumb
