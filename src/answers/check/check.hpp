// SPDX-License-Identifier: Apache-2.0
// Invariants of a healthy profile, checked on one or several recordings: calls per step, coverage, losses, node counts,
// variation over runs. What cannot be judged is `unknown` with its reason and never passes. Pure functions of their arguments
// and of the files they name; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/replay_builder.hpp"
#include "answers/check/call_counts.hpp"
#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/results.hpp"

namespace plumb {

/// "lm_head=1/step", "sampling=1/token".
[[nodiscard]] Result<ExpectedCalls> parse_expected_calls(std::string_view words);

/// What to check; nothing is checked that is not asked for.
struct Invariants {
    Phase phase = Phase::decode;          // for calls, coverage and variation
    std::vector<ExpectedCalls> calls;     // at most 64
    std::optional<double> coverage;       // at least, 0..1
    std::optional<std::uint64_t> drops;   // records lost for any reason, at most
    std::optional<std::uint64_t> pending; // scopes that were recorded and have no time, at most
    bool node_check = false;              // no captured graph changed its kernels, or has a value baked in
    std::optional<double> variation;      // standard deviation / mean of the runs' mean periods, at most
};

/// Error invalid_argument: nothing is asked for, or what is asked for is no invariant.
[[nodiscard]] Status validate(const Invariants& invariants);

struct CheckRow {
    std::string check;     // "lm_head=1/step"
    std::string recording; // its path; empty: of all of them
    Outcome verdict = Outcome::unknown;
    Figure found;        // calls per step, coverage, count, or variation
    std::string finding; // one sentence
};

struct CheckReport {
    std::vector<CheckRow> rows;
    Outcome verdict = Outcome::unknown; // of all
};

/// What one recording says.
struct Checked {
    std::string path;
    std::uint64_t recording_id[2] = {0, 0};
    Report report;
    bool records_missing = false; // dropped without room, or damaged: they may have been calls
    std::vector<CallCount> calls; // one for each of Invariants::calls
    ReplayReport replays;
};
[[nodiscard]] std::vector<CheckRow> check_one(const Checked& run, const Invariants& invariants);

/// Standard deviation / mean over the runs of the mean period of the phase.
[[nodiscard]] CheckRow check_variation(const std::vector<Figure>& mean_periods, const Invariants& invariants);
[[nodiscard]] Figure mean_period(const Report& report, Phase phase);

[[nodiscard]] Outcome verdict_of(const std::vector<CheckRow>& rows);

/// Error invalid_argument where nothing is asked for, or a run is named twice.
[[nodiscard]] Result<CheckReport> check_recordings(const std::vector<std::string>& paths, const Invariants& invariants);

/// What may be asked for on the command line.
struct CheckQuestion {
    std::vector<std::string> expected;
    std::optional<double> coverage, variation;
    std::optional<std::uint64_t> drops, pending;
    bool node_check = false;
    std::optional<Phase> phase;
    std::string file;
};

/// What its file says, then its options: they win, and their counts come in addition.
[[nodiscard]] Result<Invariants> invariants_of(const CheckQuestion& question);

template <class V>
void describe(V& v, CheckQuestion& q) {
    v("expect", q.expected, "Calls of a brick in every step: lm_head=1/step or sampling=1/token; may be repeated",
      {.value = "BRICK=COUNT"});
    v("coverage", q.coverage, "Leaf bricks cover at least this share of busy time, 0 to 1");
    v("drops", q.drops, "At most so many records were lost");
    v("pending", q.pending, "At most so many scopes were recorded but have no time");
    v("node-check", q.node_check,
      "No captured graph changed its kernels from one capture to the next, or has a value baked in");
    v("cv", q.variation, "Over at least 3 recordings: standard deviation / mean of their mean periods is at most this");
    v("phase", q.phase, "For --expect, --coverage and --cv: steps of this phase (default decode)",
      {.choices = page::step_phases});
    v("file", q.file, "Take checks from this file (schema plumb.checks/1)", {.value = "JSON"});
}

template <class V>
void describe(V& v, const CheckRow& r) {
    v.type("check", "One invariant, on one recording or on all of them.");
    v("check", r.check, "what was asked: `lm_head=1/step`");
    v("recording", r.recording, "path; empty where all recordings are judged together");
    v("verdict", r.verdict, "");
    v("found", r.found, "calls per step, coverage, a count, or the variation");
    v("finding", r.finding, "one sentence");
}

template <class V>
void describe(V& v, const CheckReport& r) {
    v.type("check report", "Invariants of a healthy profile (`plumb check`).");
    v("verdict", r.verdict, "of all checks: `fail` is exit code 1, `unknown` 3");
    v("checks", r.rows, "");
}

constexpr const char* schema_of(const CheckReport&) { return "plumb.check/1"; }
inline Outcome outcome_of(const CheckReport& report) noexcept { return report.verdict; }
[[nodiscard]] page::Page page_of(const CheckReport& report, const TextOptions& options);

} // namespace plumb
