// SPDX-License-Identifier: Apache-2.0
// What a finished (or growing) run consists of, as plain data: the seam between those who write recordings (drain) and
// those who read them (resolve, stats, export). Owned by whoever holds the value; no thread rule of its own.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/layout.hpp"

namespace plumb::recording {

enum class TrackKind : std::uint8_t { host_thread = 0, device_queue = 1 };

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

struct TrackInfo {
    std::uint32_t id = 0;
    TrackKind kind = TrackKind::host_thread;
    std::uint32_t clock = 0;
    std::uint64_t os_thread = 0; // 0 for queues
    std::string name;
    std::string source; // "cpu_tsc", …
};

struct NameInfo {
    std::uint16_t id = 0;
    Category category = Category::other;
    std::string name;
};

/// Running totals of the writer, repeated as they grow: the last one read counts.
struct Counters {
    std::vector<std::pair<std::string, std::uint64_t>> drops; // by reason, in plain words
    // Part of `drops` by Drop: what rings counted that have been given up since. A reader adds what a dead writer's
    // rings hold to these, and so has exact totals.
    std::uint64_t ended_drops[drop_slots] = {};
    std::uint64_t drain_cpu_ns = 0;
    std::uint64_t records = 0;         // ring records written to this file so far, before any limit removed some
    std::uint64_t records_removed = 0; // removed again by max_size= or keep=
    std::uint64_t unresolved = 0;      // device scopes whose time never came
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
};

/// `count` consecutive records of one track, in the order written. On device tracks `first` is in that track's clock.
struct RecordBatch {
    std::uint32_t track = 0;
    std::uint64_t first_sequence = 0; // number of records[0] within its track
    const Record* records = nullptr;
    std::size_t count = 0;
};

} // namespace plumb::recording
