// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "page/text_table.hpp"
#include "plumb/compare.hpp"
#include "render/compare_words.hpp"
#include "render/style.hpp"

namespace plumb {

namespace {

using namespace render;
using namespace page;
using Align = TextTable::Align;

class Writer {
  public:
    Writer(const Comparison& comparison, const TextOptions& options)
        : comparison_(comparison), style_(options.color ? colored : uncolored) {}

    std::string write() {
        head();
        if (comparison_.comparable) {
            for (const CompareRow& row : comparison_.rows) {
                if (row.subject == CompareSubject::step) {
                    phase(row);
                }
            }
        }
        gates();
        conditions();
        for (const std::string& note : comparison_.notes) {
            line("note  " + note);
        }
        return std::move(out_);
    }

  private:
    void line(const std::string& text) { out_ += printable(text, 10000) + "\n"; }

    void head() {
        line(runs_text(comparison_));
        for (const KeyDifference& difference : comparison_.differences) {
            out_ += difference.ignored ? style_.faint : style_.warning;
            line(std::string(difference.ignored ? "differs (ignored)  " : "differs  ") + difference.field + ": " +
                 difference.base + " -> " + difference.changed);
            out_ += style_.plain;
        }
        if (!comparison_.comparable) {
            line("NOT COMPARABLE: the runs differ in what must be equal; record them alike, or say --ignore-key FIELD "
                 "where that is what you compare");
        }
    }

    void phase(const CompareRow& step) {
        out_ += "\n";
        out_ += style_.heading;
        line(headline(comparison_, step));
        out_ += style_.plain;
        table(step.phase);
        attribution(step.phase);
    }

    static std::string verdict_of(const CompareRow& row) {
        std::string text = verdict_word(row.verdict);
        if (row.by_own_change) {
            text += " *";
        }
        return text;
    }

    void table(Phase phase) {
        TextTable table;
        table.add_column("", Align::left);
        table.add_column("of", Align::left);
        table.add_column("base us", Align::right);
        table.add_column("new us", Align::right);
        table.add_column("change", Align::right);
        table.add_column("interval", Align::right);
        table.add_column("noise", Align::right);
        table.add_column("verdict", Align::left);
        bool own = false;
        for (const CompareRow& row : comparison_.rows) {
            if (row.phase != phase || row.reason == "less than 1 % of the step") {
                continue;
            }
            own = own || row.by_own_change;
            const Change& change = judged_change(row);
            const Figure& noise = row.base_noise;
            table.add_row({printable(subject_text(row), 40),
                           std::string(subject_word(row.subject)) + (row.per_replay ? " (replays)" : ""),
                           microseconds(row.base_ns.value.value_or(0)), microseconds(row.changed_ns.value.value_or(0)),
                           percent_text(change.estimate), interval_text(change),
                           noise.value ? percent_text(noise).substr(1) : "n/a", verdict_of(row)});
        }
        table.append_to(out_, style_.faint, style_.plain);
        if (own) {
            line("*  against the pace of the other bricks of the same runs");
        }
    }

    void attribution(Phase phase) {
        for (const Attribution& attribution : comparison_.attributions) {
            if (attribution.phase != phase) {
                continue;
            }
            line("change of a step by brick, us (means over the middle half of the steps; adds up):");
            TextTable table;
            for (const char* heading : {"", "base", "new", "change"}) {
                table.add_column(heading, heading[0] == '\0' ? Align::left : Align::right);
            }
            for (const Contribution& part : attribution.parts) {
                table.add_row({printable(part.name, 40), microseconds(part.base_ns), microseconds(part.changed_ns),
                               signed_microseconds(part.change_ns)});
            }
            table.add_row({"step", microseconds(attribution.base_ns), microseconds(attribution.changed_ns),
                           signed_microseconds(attribution.change_ns)});
            table.append_to(out_, style_.faint, style_.plain);
        }
    }

    void gates() {
        if (!comparison_.gates.empty()) {
            out_ += "\n";
        }
        for (const GateResult& gate : comparison_.gates) {
            out_ += gate.outcome == GateOutcome::passed ? style_.plain : style_.warning;
            line(std::string("gate ") + gate_word(gate.outcome) + "  " + gate.gate.text + ": " + gate.sentence);
            out_ += style_.plain;
        }
    }

    /// Clocks and load of each run, where they are known.
    void conditions() {
        const auto show = [this](const char* side, const std::vector<ComparedRun>& runs) {
            for (const ComparedRun& run : runs) {
                std::string text;
                for (const auto& [key, value] : run.conditions) {
                    text += (text.empty() ? "" : ", ") + key + " " + value;
                }
                if (!text.empty()) {
                    line(std::string(side) + "  " + run.name + ": " + text);
                }
            }
        };
        out_ += "\n";
        show("base", comparison_.base);
        show("new ", comparison_.changed);
    }

    const Comparison& comparison_;
    const Style style_;
    std::string out_;
};

} // namespace

std::string render_text(const Comparison& comparison, const TextOptions& options) {
    return Writer(comparison, options).write();
}

} // namespace plumb
