// SPDX-License-Identifier: Apache-2.0
// What a comparison of runs and a history of them hold: one or many recordings a side; each run gives one number per row, and
// the spread between runs decides (docs/reference/compare.md). Plain values; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/figure.hpp"

namespace plumb {

enum class Verdict : std::uint8_t { undecided, fast, slow, same };

enum class CompareSubject : std::uint8_t { step, brick, category, layer };
inline constexpr const char* subject_words[] = {"step", "brick", "category", "layer"};
constexpr const char* subject_word(CompareSubject subject) noexcept {
    return subject_words[static_cast<std::size_t>(subject)];
}

/// One number of a run for one row: over its counted steps, of the time per step.
enum class CompareStatistic : std::uint8_t { p50, p90, p99, mean };
inline constexpr const char* statistic_words[] = {"p50", "p90", "p99", "mean"};
constexpr const char* statistic_word(CompareStatistic statistic) noexcept {
    return statistic_words[static_cast<std::size_t>(statistic)];
}

struct CompareOptions {
    /// SAME: the whole interval of the change lies within this share.
    double same_band = 0.01;
    /// Chance that a comparison of runs that do not differ names any row FAST or SLOW.
    double false_alarm = 0.01;
    /// Fields of the comparability key that may differ.
    std::vector<std::string> ignored_fields;
};

/// A change with its interval, as a share of the base: 0.03 is 3 % slower.
struct Change {
    Figure estimate, low, high;
};

/// The reason of rows that only JSON shows.
inline constexpr char too_small[] = "less than 1 % of the step";

struct CompareRow {
    CompareSubject subject = CompareSubject::step;
    Phase phase = Phase::none;
    std::string name; // of a brick or category
    Category category = Category::other;
    std::uint32_t layer = 0;
    bool device = false;
    bool per_replay = false; // of sampled replays of captured graphs, or of the steps in which a queue was timed
    CompareStatistic statistic = CompareStatistic::p50;
    Figure base_ns, changed_ns;                  // medians over the runs
    Figure base_noise, changed_noise;            // standard deviation between the runs, as a share
    std::vector<double> base_runs, changed_runs; // ns per step, in the order of the recordings
    Change change;
    /// Of bricks: the change once what the other bricks of the same run did is taken out, so that a machine that was
    /// slow during one run is no noise.
    Change own_change;
    Verdict verdict = Verdict::undecided;
    bool by_own_change = false; // the verdict stands on own_change
    std::string reason;         // of UNDECIDED
};

/// What one brick contributed to the change of a step. Over the rows of one phase these add up to the step's change where
/// Attribution::adds_up.
struct Contribution {
    std::string name; // "unattributed" last
    bool device = false;
    double base_ns = 0, changed_ns = 0; // per step, means over the central steps of each run
    double change_ns = 0;
};

struct Attribution {
    Phase phase = Phase::none;
    bool device = false;                               // made of device rows
    double base_ns = 0, changed_ns = 0, change_ns = 0; // of the step
    std::vector<Contribution> parts;                   // largest change first, then "unattributed"
    bool adds_up = true; // false: bricks are timed in some steps only, which are not those of the step
};

struct KeyDifference {
    std::string field;
    std::string base, changed; // "(absent)" where a side does not have it
    bool ignored = false;
};

enum class GateOutcome : std::uint8_t { passed, failed, undecided };

/// A limit on a change, in words: brick:attention.p50=+5%, decode.step.p50=+2%, category:ffn.mean=+1%, layer:3.p50=+3%;
/// a phase may stand before any of them. Without one, brick, category and layer are those of decode, or of the only
/// phase that there is. "fingerprint": run i of each side must agree in every checked tensor.
struct Gate {
    std::string text;
    bool fingerprint = false;
    CompareSubject subject = CompareSubject::step;
    Phase phase = Phase::none; // none: not said
    std::string name;
    std::uint32_t layer = 0;
    CompareStatistic statistic = CompareStatistic::p50;
    double limit = 0; // 0.05: at most 5 % slower; negative: at least so much faster
};

struct GateResult {
    Gate gate;
    GateOutcome outcome = GateOutcome::undecided;
    std::string sentence; // what was found
    Change change;
};

struct ComparedRun {
    std::string name; // file
    std::int64_t start_realtime_ns = 0;
    std::vector<std::pair<std::string, std::string>> conditions; // clocks, throttling, load: shown, never compared
};

struct Comparison {
    std::vector<ComparedRun> base, changed;
    std::vector<std::pair<std::string, std::string>> key; // what is equal on both sides
    std::vector<KeyDifference> differences;
    bool comparable = true;
    std::vector<CompareRow> rows; // by phase: step, bricks, categories, layers
    std::vector<Attribution> attributions;
    std::vector<GateResult> gates;
    bool one_step =
        false; // a side is the ranks of one step: what differs may be that step alone, and no gate passes or fails
    double same_band = 0, false_alarm = 0;
    std::size_t rows_corrected_for = 0;
    std::vector<std::string> notes;
};

/// The runs of one row over time.
struct HistoryRow {
    CompareSubject subject = CompareSubject::step;
    Phase phase = Phase::none;
    std::string name;
    bool device = false;
    CompareStatistic statistic = CompareStatistic::p50;
    std::vector<std::optional<double>> runs_ns; // one for each run; absent: not in it
};

struct History {
    std::vector<ComparedRun> runs;  // by start time
    std::vector<HistoryRow> rows;   // steps first, then bricks
    std::vector<std::string> notes; // files that could not be read or are copies, runs that do not compare with the
                                    // newest, and what those that do had to say
};

} // namespace plumb
