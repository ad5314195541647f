// SPDX-License-Identifier: Apache-2.0
// Where the wall clock of a phase or a step went: who was busy, who waited for whom, and what there is to gain at most.
// Plain data computed from a recording, owned by the caller; any thread. Definitions: docs/reference/wall.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/results.hpp"

namespace plumb {

/// Sums over the steps of a lane, in whole nanoseconds: what a scope held of the lane's idle time.
struct WallScope {
    std::string name;
    double self_ns = 0;  // it was the innermost one; these are disjoint
    double total_ns = 0; // with what lies in it
};

/// Idle time and its parts, in whole nanoseconds, summed over the steps of a lane.
/// Of a device: total = exposed_launch + host_work + unknown, and unknown = queued + unnamed + off_cpu.
/// Of the host: total = for_device + unknown.
struct WallIdle {
    Figure total;
    Figure exposed_launch;         // the next command was being launched
    Figure host_work;              // nothing was launched, and a named host scope ran
    Figure unknown;                // the rest
    Figure queued;                 // of it: a command had arrived and did not begin
    Figure unnamed;                // of it: a host thread was on the CPU, in no named scope
    Figure off_cpu;                // of it: nobody was on the CPU
    Figure for_device;             // host: nobody was on the CPU while a device was busy
    std::vector<WallScope> scopes; // device: what host_work is made of; host: where threads were off the CPU
};

/// The threads of the host, the queues of one device, or those of all devices together.
/// busy + idle = period; bricks + unattributed = busy; bricks_sum - bricks = overlap.
struct WallLane {
    std::string name; // "host", "cuda:0", "all devices"
    bool device = false;
    std::uint64_t tracks = 0; // threads or queues
    std::uint64_t steps = 0;  // in which it was timed
    double period_ns = 0;     // of those steps
    Figure busy_ns;           // union: at least one of its tracks was
    Figure busy_sum_ns;       // its tracks added up
    Figure launch_wait_ns;    // of busy: in scopes that include waiting for their launch, while that was under way
    double bricks_ns = 0;     // union of leaf bricks within busy
    double bricks_sum_ns = 0;
    double overlap_ns = 0;
    double laps_ns = 0; // under laps and no brick; a part of unattributed
    Figure unattributed_ns;
    Figure coverage; // bricks / busy, 0..1
    WallIdle idle;
    double off_cpu_uncertain_ns =
        0;                // when threads were off the CPU for so long is not known; parts of idle may be off by as much
    Figure host_waits_ns; // device: it was surely busy, and no thread that feeds it ran a named scope or a launch
};

enum class WallBound : std::uint8_t { no_device, host, device, undecided };

/// What the period would be shorter by, at most, if something took no time. Gains of one lane add up to its idle time where it is
/// known when threads were off the CPU; where not, those of scopes are as large as they may be.
struct WallGain {
    std::string what;
    double at_most_ns = 0; // per step
    double share = 0;      // of the period, 0..1
    Figure tokens_per_second;
};

/// One thread in the counted steps of a phase: on_cpu + run_queue + blocked = observed.
struct OffCpuThread {
    std::string name;
    double observed_ns = 0;
    double on_cpu_ns = 0;
    double run_queue_ns = 0;           // ready, and on no CPU: others had it
    double blocked_ns = 0;             // it waited for something else: a lock, a file, a device, a timer
    Figure migrations;                 // from one CPU to another
    double migrations_observed_ns = 0; // that its readings cover: they are more seldom
};

/// Sums over the intervals between samples of which nine tenths or more lie in the counted steps of a phase, each for the part that does.
struct OffCpuCauses {
    double covered_ns = 0;             // of the counted steps
    std::uint64_t intervals = 0;       // between samples, that count
    Figure run_queue_ns, blocked_ns;   // of all threads together
    std::vector<OffCpuThread> threads; // the longest off the CPU first
    Figure stolen_ns;                  // by the hypervisor, of all CPUs of the machine
    Figure minor_faults, major_faults, voluntary_switches, involuntary_switches; // of the whole process
    std::uint64_t threads_left_out = 0;                                          // at most, beyond the first 64
};

/// What all threads together did between two samples, or several where there are many.
struct OffCpuInterval {
    std::int64_t begin_ns = 0; // since the first step began
    std::int64_t length_ns = 0;
    Figure on_cpu_ns, run_queue_ns, blocked_ns; // of the threads that are in both samples
    Figure stolen_ns;
};

struct WallPhase {
    Phase phase = Phase::none;
    std::uint64_t steps = 0; // counted; a lane may have been timed in others
    std::uint64_t tokens = 0;
    Figure tokens_per_second; // tokens / period
    double period_ns = 0;
    std::vector<WallLane> lanes; // the host first, then all devices together where there are several, then each
    WallBound bound = WallBound::no_device;
    std::string reason; // one sentence
    std::vector<WallGain> gains;
    Figure own_cost_ns;      // per step: recording host scopes; inside busy
    Figure in_graph_busy_ns; // per step, at most: replays of captured graphs times the span of a plain one
    std::vector<std::pair<std::string, std::uint64_t>> unattributed; // nodes of captured graphs in no brick, by kernel
    std::optional<OffCpuCauses> off_cpu;                             // none for a single step among several
};

struct WallStep {
    std::uint64_t step = 0;
    WallPhase account;
};

struct WallReport {
    std::optional<std::uint64_t> step; // the phase is this step alone
    std::vector<WallPhase> phases;
    std::vector<WallStep> slowest; // the longest period first
    std::vector<OffCpuInterval> off_cpu_intervals;
    OwnCost own_cost; // of the whole recording
    std::vector<std::string> notes;
};

struct WallOptions {
    std::optional<Phase> phase;
    std::optional<std::uint64_t> step;    // this one alone, also a warm-up step
    std::optional<std::uint64_t> slowest; // so many of the counted steps, at most 1000
    bool operator==(const WallOptions&) const = default;
};

} // namespace plumb
