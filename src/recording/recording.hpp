// SPDX-License-Identifier: Apache-2.0
// What a finished (or growing) run consists of, as plain data: the seam between those who write recordings (drain) and
// those who read them (resolve, stats, export). Owned by whoever holds the value; no thread rule of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/kernel_times.hpp"
#include "base/layout.hpp"
#include "plumb/bricks.hpp"
#include "plumb/fingerprint.hpp"
#include "plumb/roofline.hpp"
#include "plumb/tensor.hpp"
#include "plumb/tile.hpp"

namespace plumb::recording {

/// captured_graph: scopes inside replays of one CUDA graph, of the replays that were sampled.
enum class TrackKind : std::uint8_t { host_thread = 0, device_queue = 1, captured_graph = 2 };

/// A clock that records are stamped with. Host tracks use clock 0; each device queue's clock has an id of its own.
struct ClockInfo {
    std::uint32_t id = 0;
    std::string name; // "tsc", "monotonic", "caller", "cuda:0"
};

/// Both clocks read as close together as possible. `ticks` belongs to ClockPair::clock; `monotonic_ns` is the common
/// clock (CLOCK_MONOTONIC, or the injected clock's own ns); realtime_ns only places the run in calendar time.
struct ClockPair {
    std::uint32_t clock = 0;
    std::uint64_t ticks = 0;
    std::int64_t monotonic_ns = 0;
    std::int64_t realtime_ns = 0;
    std::uint64_t uncertainty_ticks = 0; // width of the bracket the pair was read in
};

// A tick between 0.1 ps and 10 ms: every real clock, and no overflow in a fixed-point product.
inline constexpr double shortest_tick_ns = 1e-4;
inline constexpr double longest_tick_ns = 1e7;

struct TrackInfo {
    std::uint32_t id = 0;
    TrackKind kind = TrackKind::host_thread;
    std::uint32_t clock = 0;
    std::uint64_t os_thread = 0; // 0 for queues
    std::string name;
    std::string source;              // "cpu_tsc", …
    std::uint32_t sampled_every = 1; // scopes of this queue are timed in one step out of so many
    std::uint64_t graph_key = 0;     // of a captured_graph
    std::string clock_name{};        // "cuda:0"; empty: the metadata names it, or nothing does
    std::string device_name{};       // of a queue's device, as Peaks::name; empty: not known
};

struct NameInfo {
    std::uint16_t id = 0;
    Category category = Category::other;
    std::string name;
};

/// One scope of a captured graph: an interval between two stamps of a replay.
struct GraphSite {
    std::uint16_t name = 0;
    std::uint16_t layer_plus_one = 0; // 0: outside any layer
    std::uint32_t occurrence = 0;     // among the sites of the same name and layer, in order
    std::uint32_t nodes = 0;          // graph nodes that are its own
    bool leaf = true;
    bool lap = false;
};

/// How often one kernel occurs in two captures of one key.
struct GraphNodeChange {
    std::string kernel;
    std::uint32_t before = 0;
    std::uint32_t after = 0;
};

using NamedCount = std::pair<std::string, std::uint64_t>;

/// What a node of a captured graph does; nodes that are alike share one.
struct CapturedKind {
    static constexpr std::uint32_t kernel = 0, memcpy = 1; // types
    std::uint32_t type = 0;                                // as CUgraphNodeType numbers them
    std::string name;                                      // of a kernel; else the word for its type
    bool shaped = false;                                   // how the kernel is launched is known
    std::uint32_t grid[3] = {1, 1, 1};
    std::uint32_t block[3] = {1, 1, 1};
    std::uint32_t shared_bytes = 0;
};

struct CapturedNode {
    std::uint32_t kind = 0;
    std::uint32_t site_plus_one = 0;   // the innermost scope it was captured in; 0: in none
    std::uint32_t parent_plus_one = 0; // the child graph's node that it lies in; 0: in none
};

/// The nodes of one capture, in an order in which every edge leads forward and parents come before what lies in them.
struct GraphContent {
    std::vector<CapturedKind> kinds;
    std::vector<CapturedNode> nodes;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges; // from, to
    std::uint64_t nodes_left_out = 0;                           // beyond the bounds of graph_content_codec.hpp
    std::uint64_t edges_left_out = 0;                           // of those between nodes that are here
};

/// The life of one graph key so far: running totals, repeated as they change; the last one read counts.
/// NaN and empty strings: not measured, not known.
struct GraphInfo {
    static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    std::uint64_t key = 0;
    std::uint32_t track = 0; // of its samples; 0: none

    // what happened to it
    std::uint64_t captures = 0;
    std::uint64_t instantiations = 0;
    std::uint64_t updates = 0; // in place, without instantiating
    std::uint64_t uploads = 0;
    std::uint64_t replays = 0;      // all, plain and instrumented
    std::uint64_t instrumented = 0; // of those
    std::uint64_t unread = 0;       // samples given up because the one before was unread
    std::uint64_t evictions = 0;
    std::vector<NamedCount> eager_steps; // by reason
    std::uint64_t rows_used = 0;         // of rows_padded: what padding to this key wasted
    std::uint64_t rows_padded = 0;

    // what it consists of
    std::vector<NamedCount> nodes;             // by node type, of the last capture
    std::vector<NamedCount> unattributed;      // nodes in no scope, by kernel name or node type
    std::vector<GraphNodeChange> node_changes; // last capture against the one before; empty: the same
    std::uint64_t node_checks = 0;             // captures compared with the one before
    std::vector<std::string> baked_in;         // what verify_capture found: "kernel rope, parameter 2, bytes 0..3"
    std::vector<GraphSite> sites;
    std::string sites_told_by; // where it is not the engine's scopes: names of kernels and their places
    std::shared_ptr<const GraphContent> content; // of the last capture; null: not known

    // what it cost, nanoseconds of host time in all; bytes are an estimate
    double capture_ns = unknown;
    double instantiate_ns = unknown;
    double upload_ns = unknown;
    double launch_ns = unknown;
    double bytes = unknown;

    // its instrumented twin
    std::string twin;        // "event", "stamp", empty: none
    std::string twin_reason; // why there is none: "n/a (memory nodes)"
    double twin_build_ns = unknown;
    double twin_bytes = unknown;
    std::uint64_t every = 0;       // one replay out of so many is sampled now
    double site_cost_ns = unknown; // calibrated cost of one stamp in a replay
    double site_cost_error_ns =
        unknown;                    // of that: three standard errors; half of it at least, until replays confirm it
    double tick_ns = unknown;       // what the clock that its stamps read counts in, as last learnt
    double plain_span_ns = unknown; // median span of adjacent plain replays by outer events
    double closure_raw = unknown;   // (sum of part medians - plain span) / plain span
    double closure = unknown;       // the same with calibrated parts
};

/// A kernel that the caller made known: what its code hash stands for.
struct KernelInfo {
    std::uint64_t code_hash = 0; // FNV-1a of its PTX or binary
    std::string name;
    std::string file;               // of the source; empty: not given
    std::string source;             // empty: not given, or too long to keep
    std::uint64_t source_bytes = 0; // as it was given
    std::uint64_t code_bytes = 0;
    std::uint64_t code_checksum = 0; // another hash of the code: two kernels under one code_hash differ here
};

/// How much of a tensor was looked at.
enum class CheckLevel : std::uint8_t {
    nonfinite = 0, // only whether all is finite, and the largest |x|: in Fingerprint::max, the rest is not known
    full = 1,
};

/// Of tensors with NaN or Inf, tensors=nonfinite keeps so many; what comes later is only counted.
inline constexpr std::size_t most_nonfinite_checks = 4096;

/// The fingerprint of one tensor at one place of a run: what PLUMB_TENSOR leaves.
struct TensorCheck {
    std::uint64_t order = 0; // of the call among all checks of the run, from 0: the order of execution on one queue
    std::uint64_t step_plus_one = 0;
    std::uint32_t layer_plus_one = 0;
    std::uint16_t name = 0; // of the brick
    Phase phase = Phase::none;
    TensorRole role = TensorRole::output;
    CheckLevel level = CheckLevel::full;
    std::uint32_t occurrence = 0; // among those of the same step, sequence, layer, name and role, in order
    std::uint32_t sequence = 0;
    std::int64_t position = -1;  // of the first row; -1: not known
    std::uint32_t track = 0;     // of the thread, or of the device queue
    std::uint64_t graph_key = 0; // of the captured graph that it lies in, where in_graph
    std::uint64_t replay = 0;    // of that graph, from 1; 0: eager
    bool in_graph = false;

    DType dtype = DType::f32;
    std::vector<std::uint64_t> shape;
    std::uint64_t first_index = 0; // FingerprintOptions::first_index
    Fingerprint fingerprint;

    // Of logits: the last row. no_index and NaN: not looked at, or nothing is finite.
    std::uint64_t argmax = no_index;
    double margin = std::numeric_limits<double>::quiet_NaN(); // largest less second largest
};

/// All calls of one tile since the start or the last reset(), of all threads. Times in ticks of the host's clock.
struct TileTotals {
    TileKey key = 0;
    std::uint64_t count = 0, total = 0;
    std::uint64_t calm = 0; // as total, but see TileCell::calm
    std::uint64_t min = 0;  // tile_min_unknown: at least so much
    std::uint64_t max = 0;
    double bytes = 0, flops = 0; // of all calls; NaN: not every call said
};

/// Running totals of the writer, repeated as they grow: the last one read counts.
struct Counters {
    std::vector<std::pair<std::string, std::uint64_t>> drops; // by reason, in plain words
    // Part of `drops` by Drop: what rings counted that have been given up since. A reader adds what a dead writer's
    // rings hold to these, and so has exact totals.
    std::uint64_t ended_drops[drop_reasons] = {};
    std::uint64_t drain_cpu_ns = 0;
    std::uint64_t records = 0;         // ring records written to this file so far, before any limit removed some
    std::uint64_t records_removed = 0; // removed again by max_size= or keep=
    std::uint64_t unresolved = 0;      // device scopes whose time never came
    // Of the processor, for the whole process since the recording opened (counters=on): "cycles", "instructions", …
    std::vector<std::pair<std::string, std::uint64_t>> hardware;
    std::string hardware_reason; // why some are missing that were asked for
    std::uint64_t checks = 0;    // of tensors, written to this file so far, before any limit removed some
};

/// Ranks that work together: "tp", "pp", "ep", "dp".
struct RankGroup {
    std::string name;
    std::uint32_t index = 0;            // of this rank in it
    std::uint32_t size = 0;             // above index
    std::vector<std::uint32_t> members; // ranks, by index; empty: not said
    bool operator==(const RankGroup&) const = default;
};

/// What the kernel had counted for a thread that records, when it was asked.
struct ThreadSample {
    std::uint32_t track = 0;
    base::ThreadTimes times;
};

/// The same for the process and its threads at one moment: totals, so that two samples tell what lay between them.
struct OffCpuSample {
    std::int64_t monotonic_ns = 0; // on the common clock
    base::ProcessTimes process;
    std::uint64_t threads_left_out = 0; // beyond the first 64
    std::vector<ThreadSample> threads;
};

/// Fixed at the start of a run.
struct Metadata {
    std::uint64_t recording_id[2] = {0, 0};
    std::int64_t start_realtime_ns = 0;
    std::string host;
    std::uint32_t pid = 0;
    std::uint64_t process_start = 0;
    std::string boot_id;
    std::string rank;
    std::uint64_t world = 0;          // ranks of the job; 0: not known
    std::uint64_t time_namespace = 0; // one CLOCK_MONOTONIC of that boot is another's; 0: not known
    std::vector<RankGroup> groups;
    std::string ring_path;   // empty: rings in anonymous memory, not crash-safe
    std::string ring_reason; // why, when ring_path is empty
    std::string config;      // canonical spec
    std::string sync_mode;
    std::uint64_t warmup_steps = 8;
    // identity: commit, time, command line; never used to decide whether two runs compare
    std::vector<std::pair<std::string, std::string>> identity;
    // comparability key: cpu, gpu, driver, model, shapes, flags
    std::vector<std::pair<std::string, std::string>> comparability;
    // measured at start, ns: "scope", "lap", "floor.cpu_tsc", …
    std::vector<std::pair<std::string, double>> costs;
    std::vector<ClockInfo> clocks;
    // of this machine and its devices, as `plumb selftest --peaks` measured them before the run; empty: it did not
    std::vector<Peaks> peaks;
};

/// `count` consecutive records of one track, in the order written. On device tracks `first` is in that track's clock.
struct RecordBatch {
    std::uint32_t track = 0;
    std::uint64_t first_sequence = 0; // number of records[0] within its track
    const Record* records = nullptr;
    std::size_t count = 0;
    /// What came before on this track was not read, and is not missed: the records up to the next batch hold what of it still
    /// applies, work and open frames.
    bool begins_anew = false;
};

} // namespace plumb::recording
