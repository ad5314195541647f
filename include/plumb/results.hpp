// SPDX-License-Identifier: Apache-2.0
// Results: what a recording says, as plain data, and the ways to get and show it.
// Everything here is computed from a recording (or a live one, by Profiler::snapshot); values are owned by the caller.
// Functions may be called from any thread. Times are nanoseconds on the common clock unless the name says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/result.hpp"

namespace plumb {

/// A number that was measured, or the reason why there is none. Never 0 for "unknown".
struct Figure {
    std::optional<double> value;
    std::string reason; // set when value is absent: "too few samples (n = 12, p99 needs 1000)"
};

/// Moments are exact; percentiles come from a histogram with at most 1 % relative error and are absent where
/// n < 10/(1-X). variance is the sample variance (n-1), 0 for n = 1.
struct Distribution {
    std::uint64_t count = 0;
    double total_ns = 0, self_ns = 0; // total: children included; self: without them
    double min_ns = 0, max_ns = 0, mean_ns = 0, variance_ns2 = 0;
    Figure p50_ns, p90_ns, p99_ns, p999_ns;
};

/// What one row is about. Only the dimensions asked for are set.
struct RowKey {
    Phase phase = Phase::none;
    std::string name; // brick; empty in rows that sum over bricks
    Category category = Category::other;
    std::optional<std::uint32_t> layer;
    std::optional<std::uint32_t> track;
};

struct Row {
    RowKey key;
    Distribution time;
    double calls_per_step = 0;   // over the steps of this phase, warm-up apart
    double sum_per_step_ns = 0;  // total per step; children included
    Figure wall_share;           // total / period of the phase's steps, in percent
    Figure gigabytes_per_second; // 10^9 bytes; absent where no work was given
    Figure teraflops;
    Figure bytes_per_call, flops_per_call, elements_per_call;
    std::string source;  // cpu_tsc, …; "mixed" never: a row has one source
    bool lap = false;    // made of laps: also holds the gap to the next border
    bool parent = false; // had children: total and self differ, not a leaf
};

/// Accounting of the wall clock of a set of steps (docs/accuracy.md): busy + idle = period,
/// union + unattributed = busy, sum - union = overlap.
struct WallAccount {
    double period_ns = 0; // sum of the periods between step ends
    double busy_ns = 0;   // period less the off-CPU time of the tracked threads
    double idle_ns = 0;
    double union_ns = 0; // of leaf bricks within busy; laps not counted
    double sum_ns = 0;   // of the same leaf bricks
    double overlap_ns = 0;
    double unattributed_ns = 0;
    double lap_union_ns = 0;         // additionally covered by laps: inside unattributed, shown apart
    double off_cpu_uncertain_ns = 0; // off-CPU time whose place between bricks and gaps is not known
    Figure coverage;                 // union / busy, 0..1
};

struct PhaseSummary {
    Phase phase = Phase::none;
    std::uint64_t steps = 0; // counted ones, warm-up apart
    std::uint64_t warmup_steps = 0;
    std::uint64_t tokens = 0; // prefill + decode tokens of the counted steps
    std::uint64_t prefill_tokens = 0, decode_tokens = 0;
    std::uint64_t sequences = 0;
    Figure tokens_per_second; // tokens / period; absent where steps carry no tokens
    Distribution period;      // step end to step end
    Distribution span;        // host begin to end of a step
    WallAccount wall;
};

struct LabelTotal {
    std::string label;
    std::uint64_t count = 0;
    double total_ns = 0, min_ns = 0, max_ns = 0;
};

struct TrackSummary {
    std::uint32_t id = 0;
    std::string name; // thread name or queue
    bool device = false;
    std::string source;
    std::uint64_t scopes = 0;
    double total_ns = 0;
};

/// Everything that was lost, by reason in plain words ("ring full", "lap outside any scope", "damaged chunk", …).
struct LossRow {
    std::string reason;
    std::uint64_t count = 0;
};

/// Our own cost in this run: scopes times the measured cost of one, plus the drain thread's CPU time.
struct OwnCost {
    Figure scope_ns, lap_ns, floor_ns; // measured on this machine when the run started
    Figure drain_cpu_ns;
    Figure percent_of_wall;
};

struct ClockQuality {
    std::string clock; // "tsc", "monotonic", "caller"
    double ticks_per_second = 0;
    Figure residual_ns; // largest distance of a clock pair from the fitted line
    std::uint64_t pairs = 0;
};

struct Report {
    std::vector<std::pair<std::string, std::string>> description; // "model" → "qwen2.5-0.5b bf16", in order given
    std::vector<PhaseSummary> phases;
    std::vector<Row> bricks;       // by phase and brick: parents, leaves and laps
    std::vector<Row> layers;       // by phase and layer
    std::vector<Row> brick_layers; // by phase, brick and layer (only with ReportOptions::brick_layers)
    std::vector<Row> categories;   // by phase and category; leaves only
    std::vector<TrackSummary> tracks;
    std::vector<LabelTotal> labels; // untimed: never part of coverage or trace; sorted by total
    std::vector<LossRow> losses;
    std::vector<std::string> notes; // sentences the reader must know: "not crash-safe: …", "cut short: …"
    std::uint64_t scopes = 0;       // resolved
    std::uint64_t unresolved = 0;   // recorded but without a time
    OwnCost own_cost;
    ClockQuality clock;
    std::string sync_mode;
};

struct ReportOptions {
    std::optional<Phase> phase;
    std::uint64_t warmup_steps = 8; // decode steps kept apart; the recording's own setting when recording_warmup
    bool recording_warmup = true;
    bool brick_layers = false;
};

struct TextOptions {
    bool color = false;
    std::size_t width = 100;
};

/// Reads a recording (also one of a dead or still running process, its ring merged) and computes its results.
PLUMB_API Result<Report> report_recording(const std::string& path, const ReportOptions& options = {});
/// The report as an aligned table, and as JSON (schema plumb.report/1, docs/report_schema.md).
PLUMB_API std::string render_text(const Report& report, const TextOptions& options = {});
PLUMB_API std::string render_json(const Report& report);
/// Chrome trace format (JSON object form), one lane per track; streams.
PLUMB_API Status write_chrome_trace(const std::string& recording, std::ostream& out);
/// One header line, then one record per line. / One row per scope with a header row.
PLUMB_API Status export_jsonl(const std::string& recording, std::ostream& out);
PLUMB_API Status export_csv(const std::string& recording, std::ostream& out);

struct RecoverSummary {
    std::uint64_t records_recovered = 0; // taken from the ring
    std::uint64_t rings = 0;             // ring files removed
    std::vector<std::string> notes;      // what was damaged or missing
};
/// Folds a dead run's ring into its recording and removes the ring. Error already_exists while the writer lives.
PLUMB_API Result<RecoverSummary> recover_recording(const std::string& path);

} // namespace plumb
