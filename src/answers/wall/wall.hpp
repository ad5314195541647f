// SPDX-License-Identifier: Apache-2.0
// The wall account of a recording in words and JSON. Pure functions; any thread. Definitions: docs/reference/wall.md.
#pragma once

#include <string>
#include <vector>

#include "analysis/wall_report.hpp"
#include "page/options.hpp"
#include "page/page.hpp"

namespace plumb {

inline Words words_of(WallBound) {
    static constexpr const char* words[] = {"no device", "host", "device", "undecided"};
    return words;
}

[[nodiscard]] Result<WallReport> read_wall(const std::vector<std::string>& files, const WallOptions& options);

template <class V>
void describe(V& v, WallOptions& o) {
    v("phase", o.phase, "Only the steps of one phase", {.choices = page::step_phases});
    v("step", o.step, "Only the step of this number", {.excludes = "phase slowest"});
    v("slowest", o.slowest, "Also list so many of the slowest steps", {.most = 1000});
}

template <class V>
void describe(V& v, const WallScope& s) {
    v.type("wall scope", "What a named host scope held of the idle time of a lane.");
    v("name", s.name, "of the scope");
    v("self_ns", s.self_ns, "it was the innermost one; these are disjoint");
    v("total_ns", s.total_ns, "with what lies inside");
}

template <class V>
void describe(V& v, const WallIdle& i) {
    v.type("wall idle", "Idle time and its parts, summed over the steps of a lane.");
    v("total_ns", i.total,
      "of a device = `exposed_launch_ns` + `host_work_ns` + `unknown_ns`; of the host = `for_device_ns` + `unknown_ns`");
    v("exposed_launch_ns", i.exposed_launch, "of a device: the next command was being launched");
    v("host_work_ns", i.host_work, "of a device: nothing was launched, and a named host scope ran");
    v("unknown_ns", i.unknown, "the rest; of a device = `queued_ns` + `unnamed_ns` + `off_cpu_ns`");
    v("queued_ns", i.queued, "a command had arrived and did not begin");
    v("unnamed_ns", i.unnamed, "a host thread was on the CPU, in no named scope");
    v("off_cpu_ns", i.off_cpu, "nobody was on the CPU");
    v("for_device_ns", i.for_device, "of the host: nobody was on the CPU while a device was busy");
    v("scopes", i.scopes, "the idle time under named host scopes");
}

template <class V>
void describe(V& v, const WallLane& l) {
    v.type("wall lane", "The threads of the host, the queues of one device, or those of all devices together.");
    v("name", l.name, "`host`, a device, or `all devices`");
    v("device", l.device, "else the host");
    v("tracks", l.tracks, "threads or queues");
    v("steps", l.steps, "in which it was timed");
    v("period_ns", l.period_ns, "of those steps");
    v("busy_ns", l.busy_ns, "at least one of its tracks was");
    v("busy_sum_ns", l.busy_sum_ns, "its tracks added up");
    v("launch_wait_ns", l.launch_wait_ns, "of `busy_ns`: it may have been waiting for its launch");
    v("bricks_ns", l.bricks_ns, "union of leaf bricks within busy");
    v("bricks_sum_ns", l.bricks_sum_ns, "the same added up");
    v("overlap_ns", l.overlap_ns, "`bricks_sum_ns` - `bricks_ns`");
    v("laps_ns", l.laps_ns, "under laps and no brick; a part of `unattributed_ns`");
    v("unattributed_ns", l.unattributed_ns, "busy less bricks");
    v("coverage", l.coverage, "bricks / busy, 0..1");
    v("idle", l.idle, "");
    v("off_cpu_uncertain_ns", l.off_cpu_uncertain_ns,
      "off-CPU time whose place is not known, in each period at most the period: parts of `idle` may be off by as much");
    v("host_waits_ns", l.host_waits_ns, "of a device: the host waited meanwhile");
}

template <class V>
void describe(V& v, const WallGain& g) {
    v.type("wall gain", "What the period would be shorter by, at most, if something took no time.");
    v("what", g.what, "");
    v("at_most_ns", g.at_most_ns, "per step");
    v("share", g.share, "of the period, 0..1");
    v("tokens_per_second", g.tokens_per_second, "what there would be then");
}

template <class V>
void describe(V& v, const OffCpuThread& t) {
    v.type("off cpu thread", "A thread in the counted steps of a phase: `on_cpu_ns` + `run_queue_ns` + `blocked_ns` = "
                             "`observed_ns`.");
    v("name", t.name, "");
    v("observed_ns", t.observed_ns, "that the samples cover");
    v("on_cpu_ns", t.on_cpu_ns, "");
    v("run_queue_ns", t.run_queue_ns, "it was ready, and others had the CPUs");
    v("blocked_ns", t.blocked_ns, "it waited for something else: a lock, a file, a device, a timer");
    v("migrations", t.migrations, "from one CPU to another, while its readings cover `migrations_observed_ns`");
    v("migrations_observed_ns", t.migrations_observed_ns, "they are read more seldom than the rest");
}

template <class V>
void describe(V& v, const OffCpuCauses& c) {
    v.type("off cpu",
           "Why threads were off the CPU, as the kernel counts it between samples. Sums over the intervals of "
           "which nine tenths or more lie in the counted steps, each for the part that does.");
    v("covered_ns", c.covered_ns, "of the counted steps");
    v("intervals", c.intervals, "between samples, that count");
    v("run_queue_ns", c.run_queue_ns, "of all threads together");
    v("blocked_ns", c.blocked_ns, "of all threads together");
    v("threads", c.threads, "the longest off the CPU first");
    v("threads_left_out", c.threads_left_out, "beyond the first 64");
    v("stolen_ns", c.stolen_ns, "by the hypervisor, of all CPUs of the machine together");
    v("minor_faults", c.minor_faults, "page faults of the process that read nothing");
    v("major_faults", c.major_faults, "page faults of the process that read from a disk");
    v("voluntary_switches", c.voluntary_switches, "of the process: a thread waited");
    v("involuntary_switches", c.involuntary_switches, "of the process: a thread was made to wait");
}

template <class V>
void describe(V& v, const OffCpuInterval& i) {
    v.type("off cpu interval", "What all threads together did between two samples; of many, neighbours are added up.");
    v("begin_ns", i.begin_ns, "since the first step began");
    v("length_ns", i.length_ns, "");
    v("on_cpu_ns", i.on_cpu_ns, "of the threads that are in both samples");
    v("run_queue_ns", i.run_queue_ns, "");
    v("blocked_ns", i.blocked_ns, "");
    v("stolen_ns", i.stolen_ns, "");
}

template <class V>
void describe_account(V& v, const WallPhase& p) {
    v("phase", p.phase, "");
    v("steps", p.steps, "counted ones; a lane may have been timed in others");
    v("tokens", p.tokens, "of the counted steps; 0 where some carry none");
    v("tokens_per_second", p.tokens_per_second, "`tokens` / `period_ns`");
    v("period_ns", p.period_ns, "of the counted steps");
    v("bound", p.bound, "what the period is made of");
    v("reason", p.reason, "for `bound`, one sentence");
    v("lanes", p.lanes, "the host, then all devices together where there are several, then each");
    v("gains", p.gains, "");
    v("own_cost_ns", p.own_cost_ns, "per step, of recording host scopes; inside busy");
    v("in_graph_busy_ns", p.in_graph_busy_ns, "per step, at most: replays of captured graphs");
    v("off_cpu", p.off_cpu, "missing for one step among several");
    v.pairs("unattributed", "kernel", "count", p.unattributed, "nodes of captured graphs in no brick");
}

template <class V>
void describe(V& v, const WallPhase& p) {
    v.type("wall account", "Where the wall clock of a phase went. Times are sums over steps unless it says per step.");
    describe_account(v, p);
}

template <class V>
void describe(V& v, const WallStep& s) {
    v.type("wall step", "The account of a single step.");
    v("step", s.step, "its number");
    describe_account(v, s.account);
}

template <class V>
void describe(V& v, const WallReport& r) {
    v.type("wall", "Where the wall clock went, and who waited for whom (`plumb wall`).");
    v("step", r.step, "only of an account of one step: its number");
    v("phases", r.phases, "");
    v("slowest", r.slowest, "with `--slowest`, the longest period first");
    v("off_cpu_intervals", r.off_cpu_intervals, "at most 1000, of the whole recording");
    v.group("own_cost", "of the whole recording", [&](auto& own) {
        own("scope_ns", r.own_cost.scope_ns, "one scope, measured when the run began");
        own("lap_ns", r.own_cost.lap_ns, "one lap, measured when the run began");
        own("drain_cpu_ns", r.own_cost.drain_cpu_ns, "CPU time of the threads that write, and serve captured graphs");
        own("wall_share", r.own_cost.wall_share, "all of it");
    });
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const WallReport&) { return "plumb.wall/2"; }
[[nodiscard]] page::Page page_of(const WallReport& report, const TextOptions& options);
/// Why threads were off the CPU; nothing where no sample tells.
void add_off_cpu(page::Page& page, const WallPhase& phase);

} // namespace plumb
