// SPDX-License-Identifier: Apache-2.0
// What changed between runs, with gates on it, and the history of a folder of runs, as an answer. What is found:
// analysis/compare.hpp. Plain values, owned by the caller; any thread.
#pragma once

#include <string>
#include <vector>

#include "analysis/compare.hpp"
#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/result.hpp"

namespace plumb {

inline Words words_of(Verdict) {
    static constexpr const char* words[] = {"UNDECIDED", "FAST", "SLOW", "SAME"};
    return words;
}
inline Words words_of(CompareSubject) { return subject_words; }
inline Words words_of(CompareStatistic) { return statistic_words; }
inline Words words_of(GateOutcome) {
    static constexpr const char* words[] = {"PASSED", "FAILED", "UNDECIDED"};
    return words;
}

/// Errors: a side without a recording, one recording twice, a file that cannot be read. Runs that must not be compared are no
/// error: see Comparison::comparable.
[[nodiscard]] Result<Comparison> compare_recordings(const std::vector<std::string>& base,
                                                    const std::vector<std::string>& changed,
                                                    const std::vector<Gate>& gates, const CompareOptions& options);

/// Every *.plumb in a folder whose comparability key equals that of the newest, each recording once. Error: no such folder, nothing readable.
[[nodiscard]] Result<History> history_of(const std::string& folder, const CompareOptions& options);

/// What may be asked for on the command line: two recordings as they stand, or sides, or a folder.
struct CompareQuestion {
    std::vector<std::string> base, changed, gates, ignored;
    double same = 1; // percent
    std::string history;
};

template <class V>
void describe(V& v, CompareQuestion& q) {
    v("base", q.base, "Recordings of the base; at least 3 for a verdict", {.value = "FILE", .several = true});
    v("new", q.changed, "Recordings of what is compared with it", {.value = "FILE", .several = true});
    v("gate", q.gates,
      "Limit on a change: decode.step.p50=+2%, brick:attention.p50=+5%, category:ffn.mean=+1%, layer:3.p50=+3%, "
      "fingerprint",
      {.value = "GATE", .several = true});
    v("ignore-key", q.ignored, "Field of the comparability key that may differ", {.value = "FIELD", .several = true});
    v("same", q.same, "SAME: the whole interval lies within so many percent", {.value = "PERCENT"});
    v("history", q.history, "Trend over all recordings of a folder instead",
      {.value = "FOLDER", .excludes = "recordings base new gate markdown page"});
}

template <class V>
void describe(V& v, const Change& c) {
    v.type("change", "A change with its interval, as a share of the base: 0.03 is 3 % slower.");
    v("estimate", c.estimate, "");
    v("low", c.low, "");
    v("high", c.high, "");
}

template <class V>
void describe(V& v, const ComparedRun& r) {
    v.type("compared run", "One recording.");
    v("name", r.name, "its file");
    v("start_realtime_ns", r.start_realtime_ns, "when it began");
    v.map("conditions", r.conditions,
          "`load.average` when the run began, `clock.cpu_mhz` and `clock.governor` where the machine tells; never "
          "compared");
}

template <class V>
void describe(V& v, const KeyDifference& d) {
    v.type("key difference", "A field of the comparability key that is not equal on both sides.");
    v("field", d.field, "");
    v("base", d.base, "`(absent)` where the side does not have it");
    v("new", d.changed, "");
    v("ignored", d.ignored, "it may differ (`--ignore-key`)");
}

/// What rows of a comparison and of a history begin with.
template <class V, class Row>
void describe_compared(V& v, const Row& r) {
    v("phase", r.phase, "");
    v("subject", r.subject, "");
    v("name", r.name, "of a brick or category", !r.name.empty());
    v("device", r.device, "");
    v("statistic", r.statistic, "of the time per step, over the counted steps of a run");
}

template <class V>
void describe(V& v, const CompareRow& r) {
    v.type("compare row", "A step, brick, category or layer in all runs.");
    describe_compared(v, r);
    v("layer", r.layer, "of a layer", r.subject == CompareSubject::layer);
    v("category", r.category, "of a brick", r.subject == CompareSubject::brick);
    v("per_replay", r.per_replay, "from sampled replays, or from the steps in which a queue was timed");
    v("base_ns", r.base_ns, "median over the runs");
    v("new_ns", r.changed_ns, "");
    v("base_noise", r.base_noise, "standard deviation between runs, as a share");
    v("new_noise", r.changed_noise, "");
    v("base_runs_ns", r.base_runs, "each run, in the order of the recordings");
    v("new_runs_ns", r.changed_runs, "");
    v("change", r.change, "");
    v("own_change", r.own_change, "against the pace of the other bricks");
    v("verdict", r.verdict, "");
    v("by_own_change", r.by_own_change, "the verdict stands on `own_change`");
    v("reason", r.reason, "of UNDECIDED", r.verdict == Verdict::undecided);
}

template <class V>
void describe(V& v, const Contribution& c) {
    v.type("contribution", "What one brick contributed to the change of a step.");
    v("name", c.name, "a brick; `unattributed` last");
    v("base_ns", c.base_ns, "per step");
    v("new_ns", c.changed_ns, "");
    v("change_ns", c.change_ns, "");
}

template <class V>
void describe(V& v, const Attribution& a) {
    v.type("attribution", "The change of a step by brick: means over the middle half of the steps.");
    v("phase", a.phase, "");
    v("device", a.device, "its parts are those of the device");
    v("base_ns", a.base_ns, "of the step");
    v("new_ns", a.changed_ns, "");
    v("change_ns", a.change_ns, "");
    v("parts", a.parts, "the largest change first");
    v("adds_up", a.adds_up,
      "the parts add up to the change of the step; not where bricks are timed in some steps only");
}

template <class V>
void describe(V& v, const GateResult& g) {
    v.type("gate", "A limit on a change, and what became of it.");
    v("gate", g.gate.text, "as it was given");
    v("outcome", g.outcome, "");
    v("sentence", g.sentence, "what was found");
    v("change", g.change, "where there is one", g.change.estimate.value.has_value());
}

template <class V>
void describe(V& v, const Comparison& c) {
    const Outcome outcome = outcome_of(c);
    v.type("compare",
           "What changed between runs (`plumb compare`). Changes are shares of the base: 0.03 is 3 % slower.");
    v("comparable", c.comparable, "the comparability keys agree");
    v("one_step", c.one_step, "a side is the ranks of one step: nothing is said of the builds");
    v("exit_code", outcome == Outcome::pass ? 0 : outcome == Outcome::fail ? 1 : 3, "what the command exits with");
    v("same_band", c.same_band, "half width of SAME");
    v("false_alarm", c.false_alarm, "chance of a false verdict in the whole comparison");
    v("intervals", c.rows_corrected_for, "how many intervals that chance is divided among");
    v("base", c.base, "");
    v("new", c.changed, "");
    v.pairs("key", "field", "value", c.key, "what is equal");
    v("differences", c.differences, "");
    v("rows", c.rows, "by phase: step, bricks, categories, layers");
    v("attributions", c.attributions, "by phase");
    v("gates", c.gates, "");
    v("notes", c.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const Comparison&) { return "plumb.compare/1"; }
[[nodiscard]] page::Page page_of(const Comparison& comparison, const TextOptions& options);
/// For the comment of a pull request: no file names and no host, what must be read first, the rest folded.
[[nodiscard]] std::string markdown_of(const Comparison& comparison);

template <class V>
void describe(V& v, const HistoryRow& r) {
    v.type("history row", "A step or brick over time.");
    describe_compared(v, r);
    v("runs_ns", r.runs_ns, "one for each run; null: not in it");
}

template <class V>
void describe(V& v, const History& h) {
    v.type("history", "The runs of a folder over time (`plumb compare --history`).");
    v("runs", h.runs, "by start time");
    v("rows", h.rows, "by phase: the step, then bricks");
    v("notes", h.notes, "files left out, and why; what the runs have to say");
}

constexpr const char* schema_of(const History&) { return "plumb.history/1"; }
[[nodiscard]] page::Page page_of(const History& history, const TextOptions& options);

} // namespace plumb
