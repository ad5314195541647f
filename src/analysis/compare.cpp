// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "analysis/compare_gate.hpp"
#include "analysis/compare_key.hpp"
#include "analysis/compare_rows.hpp"
#include "stats/sample_check.hpp"

namespace plumb {

Outcome outcome_of(const Comparison& comparison) noexcept {
    if (!comparison.comparable) {
        return Outcome::unknown;
    }
    if (!comparison.gates.empty()) {
        const auto any = [&comparison](GateOutcome outcome) {
            return std::any_of(comparison.gates.begin(), comparison.gates.end(),
                               [outcome](const GateResult& gate) { return gate.outcome == outcome; });
        };
        return any(GateOutcome::failed)      ? Outcome::fail
               : any(GateOutcome::undecided) ? Outcome::unknown
                                             : Outcome::pass;
    }
    // Decode is what a user of one waits for; the rows stand by phase: prefill, decode, mixed.
    const CompareRow* step = nullptr;
    for (const CompareRow& row : comparison.rows) {
        if (row.subject == CompareSubject::step && row.phase != Phase::none &&
            (step == nullptr || step->phase == Phase::prefill)) {
            step = &row;
        }
    }
    return step != nullptr && step->verdict != Verdict::undecided ? Outcome::pass : Outcome::unknown;
}

namespace analysis {
namespace {

std::vector<RunFigures> figures_of(const std::vector<NamedRun>& runs) {
    std::vector<RunFigures> figures;
    for (const NamedRun& run : runs) {
        figures.push_back(run.figures);
    }
    return figures;
}

std::vector<ComparedRun> shown(const std::vector<NamedRun>& runs) {
    std::vector<ComparedRun> out;
    for (const NamedRun& run : runs) {
        out.push_back({run.name, run.figures.start_realtime_ns, conditions_of(run.figures)});
    }
    return out;
}

/// Runs of one side all before those of the other: then a machine that slowly warms up looks like a change.
bool one_after_the_other(const std::vector<NamedRun>& base, const std::vector<NamedRun>& changed) {
    const auto before = [](const NamedRun& a, const NamedRun& b) {
        return a.figures.start_realtime_ns < b.figures.start_realtime_ns;
    };
    const auto [base_first, base_last] = std::minmax_element(base.begin(), base.end(), before);
    const auto [first, last] = std::minmax_element(changed.begin(), changed.end(), before);
    return before(*base_last, *first) || before(*last, *base_first);
}

/// Ranks that ran one step together are no runs of their own: what befell the step befell all of them.
bool ranks_of_one_step(const std::vector<NamedRun>& runs) {
    std::set<std::string> ranks;
    for (const NamedRun& run : runs) {
        std::uint64_t steps = 0;
        for (const RunPhase& phase : run.figures.phases) {
            steps += phase.steps;
        }
        if (steps != 1 || run.figures.rank.empty() || !ranks.insert(run.figures.rank).second) {
            return false;
        }
    }
    return runs.size() > 1;
}

void add_notes(const std::vector<NamedRun>& base, const std::vector<NamedRun>& changed, Comparison& out) {
    if (base.size() < stats::fewest_runs || changed.size() < stats::fewest_runs) {
        out.notes.push_back("No verdict: " + std::to_string(base.size()) + " and " + std::to_string(changed.size()) +
                            " runs; the spread between runs needs at least 3 a side, and 5 make a good comparison.");
    } else if (!out.one_step && one_after_the_other(base, changed)) {
        out.notes.push_back("All runs of one side came before those of the other, so a machine that changed in between "
                            "would look like a change; record the sides by turns.");
    }
    for (const auto* side : {&base, &changed}) {
        const std::vector<std::string> notes = notes_of(*side);
        out.notes.insert(out.notes.end(), notes.begin(), notes.end());
    }
}

} // namespace

std::vector<std::string> notes_of(const std::vector<NamedRun>& runs) {
    std::vector<std::pair<std::string, std::string>> notes; // with the runs it is of
    for (const NamedRun& run : runs) {
        for (const std::string& note : run.figures.notes) {
            const auto known =
                std::find_if(notes.begin(), notes.end(), [&note](const auto& other) { return other.first == note; });
            if (known == notes.end()) {
                notes.emplace_back(note, run.name);
            } else {
                known->second += ", " + run.name;
            }
        }
    }
    std::vector<std::string> out;
    for (const auto& [note, names] : notes) {
        out.push_back(names + ": " + note);
    }
    return out;
}

Comparison compare_runs(const std::vector<NamedRun>& base, const std::vector<NamedRun>& changed,
                        const std::vector<Gate>& gates, const CompareOptions& options) {
    Comparison out;
    out.same_band = options.same_band;
    out.false_alarm = options.false_alarm;
    out.base = shown(base);
    out.changed = shown(changed);
    const std::vector<RunFigures> before = figures_of(base);
    const std::vector<RunFigures> after = figures_of(changed);
    compare_keys(before, after, options.ignored_fields, out);
    for (const Gate& gate : gates) {
        out.gates.push_back({gate, GateOutcome::undecided, "the runs are not comparable", {}});
    }
    if (!out.comparable) {
        return out;
    }
    compare_rows(before, after, options, out);
    attribute(before, after, out);
    out.one_step = ranks_of_one_step(base) || ranks_of_one_step(changed);
    // Each gate is asked by name; the chance that any of them errs is what the caller allowed.
    const double confidence = 1 - options.false_alarm / static_cast<double>(std::max<std::size_t>(1, gates.size()));
    for (GateResult& result : out.gates) {
        if (out.one_step) {
            result.sentence = "the ranks of one step are one run, and a gate needs several";
        } else if (result.gate.fingerprint) {
            result.sentence = "no tensor was compared";
        } else {
            result = judge_gate(result.gate, before, after, confidence);
        }
    }
    add_notes(base, changed, out);
    return out;
}

} // namespace analysis
} // namespace plumb
