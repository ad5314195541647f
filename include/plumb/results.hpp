// SPDX-License-Identifier: Apache-2.0
// Results: what a recording says, as plain data, and the ways to get and show it.
// Everything here is computed from a recording (or a live one, by Profiler::snapshot); values are owned by the caller.
// report_recording() and render_…() of a report come with libplumb, and are `unavailable` (a text: its sentence; JSON: empty) where
// libplumb-analysis is not there; programs that call the other functions link plumb::analysis.
// Functions may be called from any thread. Times are nanoseconds on the common clock unless the name says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/answer.hpp"
#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/figure.hpp"
#include "plumb/result.hpp"
#include "plumb/roofline.hpp"

namespace plumb {

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
    std::optional<std::uint64_t> graph; // key of a captured graph
};

/// What a row's figures per step are made of.
enum class RowBasis : std::uint8_t {
    steps,       // the counted steps of the phase
    timed_steps, // those steps in which the device queues were timed (device.every=)
    replays,     // sampled replays of captured graphs: replays per counted step times the mean of each site
};

struct Row {
    RowKey key;
    Distribution time;           // of the samples there are
    double calls_per_step = 0;   // over the steps of this phase, warm-up apart; see basis
    double sum_per_step_ns = 0;  // total per step; children included
    Figure wall_share;           // total / period of the phase's steps, 0 to 1
    Figure gigabytes_per_second; // 10^9 bytes; absent where no work was given
    Figure teraflops;
    Figure bytes_per_call, flops_per_call, elements_per_call;
    Figure bytes_per_step;     // of all calls that gave their bytes
    Figure barrier_wait_share; // of the time: its thread waited for the others of its team, 0 to 1
    Roofline roof;             // against the peaks of the place where it ran
    Figure excess_per_step_ns; // sum_per_step_ns less bytes_per_step at the read bandwidth of that place
    std::string source;        // cpu_tsc, …; "mixed" never: a row has one source
    bool lap = false;          // made of laps: also holds the gap to the next border
    bool parent = false;       // had children: total and self differ, not a leaf
    RowBasis basis = RowBasis::steps;
    bool device = false;
    std::string
        place{}; // the device whose queues its samples come from: "cuda:0"; empty: the host, not known, or several
    std::uint64_t basis_steps = 0;      // so many steps that figures per step are made of
    std::uint64_t launch_wait = 0;      // samples that include waiting for their launch
    std::uint64_t below_floor = 0;      // samples shorter than their source can resolve
    std::uint64_t may_overlap = 0;      // samples of a queue that runs out of order: only their union was busy
    std::uint64_t cut_by_neighbour = 0; // samples that ran beside their neighbour and are counted only from its end
    std::uint64_t sites = 0, sites_timed = 0; // places in the graphs replayed; sum_per_step_ns is of those timed
    Figure raw_sum_per_step_ns;               // with the cost of the stamps left in; only of replays
    Figure
        calls_at_once{}; // sum of its samples / the time in which any of them ran, in some of the steps: 4 where four threads share it
};

/// Accounting of the wall clock of a set of steps (docs/reference/accuracy.md): busy + idle = period,
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
    double bricks_idle_ns = 0;       // of the same leaf bricks, beyond busy: in their rows and in idle
    double bricks_outside_ns = 0;   // of all of these, those that are in no row of the phase: outside its counted steps
    double bricks_elsewhere_ns = 0; // of the leaf bricks in its rows: outside the periods of its counted steps
};

/// The device's side of the counted steps of a phase, per step. In-graph busy is an upper bound: the span of a replay
/// holds the gaps between its kernels; so in-graph idle cannot be known from stamps.
struct DeviceAccount {
    std::uint64_t steps = 0; // in which the queues were timed
    Figure busy_per_step_ns; // union of the scopes of device queues
    Figure idle_per_step_ns; // period less that
    /// From the begin of a step's first scope on a device queue to the end of its last: whatever the device ran in between, in
    /// scopes or outside, lies in it.
    Figure stretch_per_step_ns;
    Figure coverage_at_least;  // union of the queues' leaf bricks / that, 0..1: of its busy time at least so much
    std::uint64_t replays = 0; // of captured graphs, in the counted steps
    Figure in_graph_busy_per_step_ns;
    Figure in_graph_idle_per_step_ns;
};

/// What a step would take if its bytes were all that there is to do: those that leaf bricks on one place state, at the read
/// bandwidth measured there, of all devices that may have shared them. A lower bound where bricks state none. The gap to the period is kernels, what lies between
/// them, and the host: ns_per_step + kernel_excess + between_kernels + host = period.
struct SpeedOfLight {
    std::string place; // "host", "cuda"
    Figure bytes_per_step;
    Figure ns_per_step;
    Figure reached_share;    // ns_per_step of the mean period
    bool fits_cache = false; // the bytes fit the last-level cache: then memory sets no such limit
    std::uint64_t bricks_without_bytes = 0;
    // Per step, of the steps in which the device was timed.
    Figure kernel_excess_ns;   // kernels took longer than their bytes; on the host, all of the gap
    Figure between_kernels_ns; // from the first kernel of a step to the last, while none ran
    Figure device_excess_ns;   // both: what is known where a span holds the gaps between its kernels
    Figure host_ns;            // before the first kernel and behind the last: launch, sampling, waiting
    std::string
        kernel_times; // what told kernels from the gaps between them: "kernel stamps", "trace"; empty: nothing did
    std::uint64_t devices = 1; // of that backend, that may have shared the bytes
};

struct PhaseSummary {
    Phase phase = Phase::none;
    std::uint64_t steps = 0; // counted ones, warm-up and sampled ones apart
    std::uint64_t warmup_steps = 0;
    /// Steps that sampling made different (device scopes timed in some steps only, instrumented and first replays): in no
    /// figure of this summary, unless every step is like it.
    std::uint64_t sampled_steps = 0;
    bool all_sampled = false;
    std::uint64_t tokens = 0; // prefill + decode tokens of the counted steps
    std::uint64_t prefill_tokens = 0, decode_tokens = 0;
    std::uint64_t sequences = 0;
    Figure tokens_per_second; // tokens / period; absent where steps carry no tokens
    Distribution period;      // step end to step end
    Distribution span;        // host begin to end of a step
    WallAccount wall;
    std::optional<DeviceAccount> device; // none where nothing ran on a device
    /// Of the counted steps whose kernels stamped their own times (PLUMB_STEP_KERNELS).
    std::uint64_t stamped_steps = 0;
    Figure kernels_per_step_ns,
        kernel_stretch_per_step_ns;           // a kernel ran; from the first one's begin to the last one's end
    std::vector<SpeedOfLight> speed_of_light; // by place; empty where no brick states its bytes
};

/// One captured graph in one phase.
struct GraphSummary {
    Phase phase = Phase::none;
    std::uint64_t key = 0;
    std::string source;
    std::uint64_t replays = 0; // in the counted steps
    double replays_per_step = 0;
    std::uint64_t sampled_replays = 0;        // instrumented ones, warm-up apart
    std::uint64_t sites = 0, sites_timed = 0; // leaves and laps
    Figure sites_ns;             // of one replay: sum over the sites of the mean of their samples, calibrated
    Figure raw_sites_ns;         // with the cost of the stamps left in
    Figure plain_span_ns;        // median of adjacent plain replays by outer events
    Figure closure_raw, closure; // (sum of part medians - plain span) / plain span, as the run found it
    std::vector<std::pair<std::string, std::uint64_t>> unattributed; // nodes in no scope, by kernel name
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
    std::uint32_t sampled_every = 1;                   // timed in one step out of so many
    std::optional<std::uint64_t> graph = std::nullopt; // key, where the scopes lie inside replays of a captured graph
};

/// Everything that was lost, by reason in plain words ("ring full", "lap outside any scope", "damaged chunk", …).
struct LossRow {
    std::string reason;
    std::uint64_t count = 0;
};

/// Our own cost in this run: scopes times the measured cost of one, plus the CPU time of the drain thread and of the one that serves captured graphs.
struct OwnCost {
    Figure scope_ns, lap_ns, floor_ns; // measured on this machine when the run started
    Figure drain_cpu_ns;
    Figure wall_share;
};

/// By the processor's own counters (counters=on), of the whole process from the opening of the recording (or the last
/// reset()) on: all its threads, user code only. "Cache" is what the kernel's generic events mean, the last level.
struct ProcessorCounters {
    Figure cycles, instructions, instructions_per_cycle;
    Figure cache_references, cache_misses, cache_miss_share;
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
    std::vector<Row> graph_bricks; // by phase, graph key and brick: device scopes inside replays
    std::vector<GraphSummary> graphs;
    std::vector<TrackSummary> tracks;
    std::vector<LabelTotal> labels; // untimed: never part of coverage or trace; sorted by total
    std::vector<LossRow> losses;
    std::vector<std::string> notes; // sentences the reader must know: "not crash-safe: …", "cut short: …"
    std::uint64_t scopes = 0;       // resolved
    std::uint64_t unresolved = 0;   // recorded but without a time
    OwnCost own_cost;
    ClockQuality clock;
    std::string sync_mode;
    std::optional<ProcessorCounters> counters; // none: not asked for
    std::vector<Peaks> peaks; // measured where the run ran, before it; empty: `plumb selftest --peaks` was not run
};

struct ReportOptions {
    std::optional<Phase> phase;
    std::uint64_t warmup_steps = 8; // decode steps kept apart; the recording's own setting when recording_warmup
    bool recording_warmup = true;
    bool brick_layers = false;
};

/// Reads a recording (also one of a dead or still running process, its ring merged) and computes its results.
PLUMB_API Result<Report> report_recording(const std::string& path, const ReportOptions& options = {});
/// The report as an aligned table, and as JSON (schema plumb.report/2, docs/reference/report_schema.md).
PLUMB_API std::string render_text(const Report& report, const TextOptions& options = {});
PLUMB_API std::string render_json(const Report& report);

struct ExportFormat {
    std::string name, meaning;
    bool tables = false; // a file of each below a folder: export_files()
};
/// In the order in which help lists them.
PLUMB_API const std::vector<ExportFormat>& known_formats();
/// Every sample of a recording. Errors: not_found for an unknown format (the sentence lists the known ones), what reading the file
/// gives, and those of the stream.
PLUMB_API Status export_recording(const std::string& recording, std::string_view format, std::ostream& out);

/// What a format of several tables writes for one recording.
struct ExportFile {
    std::string table; // "scopes"
    std::string path;  // below the folder that all go into: "scopes/host=box/rank=0/<id of the recording>.parquet"
};
/// None where the format is of one stream. Errors: not_found for an unknown format, and what opening the file gives.
PLUMB_API Result<std::vector<ExportFile>> export_files(const std::string& recording, std::string_view format);
/// One of its tables. Errors: as export_recording(), and not_found for an unknown table.
PLUMB_API Status export_table(const std::string& recording, std::string_view format, std::string_view table,
                              std::ostream& out);
/// A part of a recording. What is not set leaves nothing out.
struct ExportWindow {
    /// Numbers of the first and the last; what lies in no step is out.
    std::optional<std::pair<std::uint64_t, std::uint64_t>> steps;
    std::optional<std::pair<std::uint32_t, std::uint32_t>> layers; // first and last; steps themselves stay
    std::vector<std::string> tracks;                               // ids, or parts of names
    /// So many of the slowest decode steps among those, warm-up and sampled ones apart; of all phases where there are none.
    std::uint64_t slowest = 0;
};
/// The samples of a window; reads no more of the file than it needs where the recording says which steps lie where. Gives
/// sentences that whoever looks at the output should know. A format for viewers that are slow with more than 2 million slices
/// (perfetto) has whole steps evenly spaced, and nothing that lies in no step, where nothing is set and all are more. Errors: as
/// above; invalid_argument for a track that is not there; not_found where nothing lies in the window; then nothing was written.
PLUMB_API Result<std::vector<std::string>> export_recording(const std::string& recording, std::string_view format,
                                                            std::ostream& out, const ExportWindow& window);

/// Folds a dead run's ring into its recording and removes the ring; says what was in it, as text and as JSON (schema
/// plumb.recover/1). Error already_exists while the writer lives.
PLUMB_API Result<Answer> recover_recording(const std::string& path);

} // namespace plumb
