// SPDX-License-Identifier: Apache-2.0
// The report (plumb/results.hpp): how its structs describe themselves, and its page.
// Pure functions of what the caller owns; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

#include "base/peak_fields.hpp"
#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/results.hpp"

namespace plumb {

inline Words words_of(RowBasis) {
    static constexpr const char* words[] = {"steps", "timed_steps", "replays"};
    return words;
}
inline Words words_of(Bottleneck) {
    static constexpr const char* words[] = {"unknown", "memory", "compute", "latency", "cache"};
    return words;
}

/// report_recording().
[[nodiscard]] Result<Report> read_report(const std::string& path, const ReportOptions& options);

/// What may be asked for on the command line.
struct ReportQuestion {
    std::optional<Phase> phase;
    std::optional<std::uint64_t> warmup;
    bool layers = false;
    std::string with; // names of answers, separated by commas
};

template <class V>
void describe(V& v, ReportQuestion& q) {
    v("phase", q.phase, "Only the steps of one phase", {.choices = page::step_phases});
    v("warmup", q.warmup, "Decode steps to keep apart at the start (default: what the recording says)");
    v("layers", q.layers, "Add a table of every brick in every layer");
    v("with", q.with, "Add other answers from the same reading, with options of theirs: wall,layers:metric=mean",
      {.value = "ANSWERS"});
}

template <class V>
void describe(V& v, const Distribution& d) {
    v.type("distribution", "Percentiles have at most 1 % relative error and are absent where n < 10 / (1 − X).");
    v("count", d.count, "");
    v("total_ns", d.total_ns, "with the time of direct children");
    v("self_ns", d.self_ns, "without it");
    v("min_ns", d.min_ns, "exact");
    v("max_ns", d.max_ns, "exact");
    v("mean_ns", d.mean_ns, "exact");
    v("variance_ns2", d.variance_ns2, "sample variance (n − 1); 0 for one sample");
    v("p50_ns", d.p50_ns, "");
    v("p90_ns", d.p90_ns, "");
    v("p99_ns", d.p99_ns, "");
    v("p999_ns", d.p999_ns, "");
}

template <class V>
void describe_rows_of_devices(V& v, const Row& r) {
    const bool replays = r.basis == RowBasis::replays;
    v("basis", r.basis,
      "what `calls_per_step` and `sum_per_step_ns` are made of: `steps`, the counted ones; `timed_steps`, those in which "
      "the queues were timed; `replays`, replays per counted step × the mean of each site");
    v("basis_steps", r.basis_steps, "so many steps");
    v("launch_wait", r.launch_wait, "samples that include waiting for their launch");
    v("below_floor", r.below_floor, "samples shorter than their source can resolve");
    v("may_overlap", r.may_overlap,
      "only where not 0: samples of a queue that runs out of order; their sum is more than the time in which the device "
      "was busy",
      r.may_overlap != 0);
    v("cut_by_neighbour", r.cut_by_neighbour,
      "only where not 0: samples that ran beside the scope before them and count only from where it ended; they may be "
      "shorter than their work took, and no time is in two of them",
      r.cut_by_neighbour != 0);
    v("sites", r.sites, "basis `replays`: scopes in the graphs replayed", replays);
    v("sites_timed", r.sites_timed, "basis `replays`: those that have samples; `sum_per_step_ns` is of them", replays);
    v("raw_sum_per_step_ns", r.raw_sum_per_step_ns,
      "basis `replays`: the sum with the cost of one stamp left in for each site; absent where that cost is not known",
      replays);
}

template <class V>
void describe_roofline(V& v, const Row& r) {
    v("bytes_per_step", r.bytes_per_step, "of all calls that stated their bytes");
    v("calls_at_once", r.calls_at_once,
      "sum of its samples / the time in which any of them ran, in up to 32 steps of the phase: 4 where four threads share "
      "it");
    v("excess_per_step_ns", r.excess_per_step_ns,
      "`sum_per_step_ns`, divided by `calls_at_once` where they share the peaks of one place, less those bytes at the "
      "peak read bandwidth");
    v("intensity", r.roof.intensity, "flops per byte");
    v("share", r.roof.share, "of min(peak flops, intensity × peak bandwidth); absent where intensity is unknown or 0");
    v("memory_share", r.roof.memory_share, "of the peak read bandwidth");
    v("compute_share", r.roof.compute_share, "of the peak flops (of f32 for a model of f32, else the highest)");
    v("fits_cache", r.roof.fits_cache, "what the brick moves in a step fits the last-level caches");
    v("bottleneck", r.roof.bottleneck, "what kept it from being faster");
    v("reason", r.roof.reason, "one sentence: why this one");
}

template <class V>
void describe(V& v, const Row& r) {
    v.type("row", "What one brick, layer or category took. Only the dimensions that it is about are set.");
    v("phase", r.key.phase, "");
    v("name", r.key.name, "the brick; empty in rows that sum over bricks");
    v("category", r.key.category, "");
    v("layer", r.key.layer, "only in rows of one layer");
    v("track", r.key.track, "only in rows of one track: its `id`");
    v("graph", r.key.graph, "only in rows of one captured graph: its key, 64 bits without a sign");
    v("time", r.time, "of one call");
    v("calls_per_step", r.calls_per_step, "");
    v("sum_per_step_ns", r.sum_per_step_ns, "total per step, children included");
    v("wall_share", r.wall_share, "total / period of the phase, 0 to 1");
    v("gigabytes_per_second", r.gigabytes_per_second, "GB is 10^9 bytes");
    v("teraflops", r.teraflops, "10^12 floating-point operations per second");
    v("bytes_per_call", r.bytes_per_call, "");
    v("flops_per_call", r.flops_per_call, "");
    v("elements_per_call", r.elements_per_call, "");
    v("barrier_wait_share", r.barrier_wait_share,
      "of its time: its thread waited for the others of its team (threads that share the work unequally), 0 to 1");
    v("source", r.source, "what timed it: `cpu_tsc` …");
    v("lap", r.lap, "made of laps: also holds the gap to the next border");
    v("parent", r.parent, "holds other bricks: `self_ns` and `total_ns` differ");
    v.group("device", "only in rows of devices", r.device, [&](auto& device) { describe_rows_of_devices(device, r); });
    v.group("roofline", "against the peaks of where it ran (roofline.md); shares are never clamped",
            [&](auto& roofline) { describe_roofline(roofline, r); });
}

template <class V>
void describe(V& v, const WallAccount& w) {
    v.type("wall account",
           "busy + idle = period; union + unattributed = busy; sum − union = overlap (definitions: accuracy.md).");
    v("period_ns", w.period_ns, "sum of the periods of the counted steps");
    v("busy_ns", w.busy_ns, "period less the off-CPU time of the tracked threads");
    v("idle_ns", w.idle_ns, "");
    v("union_ns", w.union_ns, "time inside at least one leaf brick; laps not counted");
    v("sum_ns", w.sum_ns, "of the same leaf bricks");
    v("overlap_ns", w.overlap_ns, "");
    v("unattributed_ns", w.unattributed_ns, "busy, but inside no leaf brick");
    v("bricks_outside_ns", w.bricks_outside_ns,
      "leaf bricks that lie in these periods and in no row of the phase: outside its counted steps");
    v("bricks_elsewhere_ns", w.bricks_elsewhere_ns,
      "leaf bricks that are in rows of the phase and in none of these periods; 0 where queues are timed in some steps only");
    v("lap_union_ns", w.lap_union_ns, "the part of unattributed time that laps cover");
    v("off_cpu_uncertain_ns", w.off_cpu_uncertain_ns,
      "off-CPU time whose place between bricks and gaps is not known: threads added up, in each period at most the period");
    v("coverage", w.coverage, "union / busy, 0 to 1");
}

template <class V>
void describe(V& v, const DeviceAccount& d) {
    v.type("device account", "The device's side of the counted steps, per step.");
    v("timed_steps", d.steps, "steps in which the device queues were timed");
    v("busy_per_step_ns", d.busy_per_step_ns, "union of the scopes of device queues, in those steps");
    v("idle_per_step_ns", d.idle_per_step_ns,
      "period of those steps less that; absent where captured graphs ran in them too");
    v("stretch_per_step_ns", d.stretch_per_step_ns,
      "from the begin of a step's first scope on a device queue to the end of its last, in those steps; absent where "
      "captured graphs ran in them too");
    v("coverage_at_least", d.coverage_at_least,
      "union of the queues' leaf bricks / that stretch, 0 to 1. Whatever the device ran in between, in scopes or outside, "
      "lies in the stretch, so bricks hold at least this share of its busy time. Absent as the stretch is");
    v("replays", d.replays, "of captured graphs, in the counted steps");
    v("in_graph_busy_at_most_per_step_ns", d.in_graph_busy_per_step_ns,
      "replays × the span of a plain replay: an upper bound, since spans hold the gaps between kernels");
    v("in_graph_idle_per_step_ns", d.in_graph_idle_per_step_ns, "absent: stamps cannot tell it");
}

template <class V>
void describe(V& v, const SpeedOfLight& s) {
    v.type("speed of light", "What a step would take if its bytes were all that there is to do (roofline.md).");
    v("place", s.place, "`host`, or the backend of the devices: `cuda`");
    v("devices", s.devices, "of that backend, that may have shared the bytes");
    v("bytes_per_step", s.bytes_per_step, "of the leaf bricks that state bytes");
    v("ns_per_step", s.ns_per_step, "those bytes at the peak read bandwidth of all `devices`");
    v("reached_share", s.reached_share, "`ns_per_step` of the mean period");
    v("fits_cache", s.fits_cache, "the bytes fit the last-level caches, so memory sets no such limit");
    v("bricks_without_bytes", s.bricks_without_bytes, "rows that state none: the figures above are lower bounds");
    v("kernel_excess_ns", s.kernel_excess_ns, "kernels took longer than their bytes; on the host, all of the gap");
    v("between_kernels_ns", s.between_kernels_ns, "from the first kernel of a step to the last, while none ran");
    v("device_excess_ns", s.device_excess_ns,
      "`kernel_excess_ns` + `between_kernels_ns`: known also where the two are not told apart");
    v("host_ns", s.host_ns,
      "before the first kernel and behind the last: launch, sampling, waiting; `ns_per_step` + `device_excess_ns` + "
      "`host_ns` = the period");
    v("kernel_times", s.kernel_times,
      "what told kernels from the gaps between them: `kernel stamps` (written by the kernels themselves) or `trace`; only "
      "where something did",
      !s.kernel_times.empty());
}

template <class V>
void describe(V& v, const PhaseSummary& p) {
    v.type("phase summary", "The counted steps of one phase.");
    const bool sampled = p.sampled_steps != 0 || p.all_sampled;
    v("phase", p.phase, "");
    v("steps", p.steps, "counted steps: warm-up and sampled ones apart");
    v("warmup_steps", p.warmup_steps, "steps kept apart: in no other figure of this report");
    v("tokens", p.tokens, "`prefill_tokens` + `decode_tokens` of the counted steps");
    v("prefill_tokens", p.prefill_tokens, "");
    v("decode_tokens", p.decode_tokens, "");
    v("sequences", p.sequences, "sum over the steps");
    v("tokens_per_second", p.tokens_per_second, "tokens / period");
    v("period", p.period, "step end to step end");
    v("span", p.span, "host begin to last end of a step");
    v("wall", p.wall, "where the period went");
    v("sampled_steps", p.sampled_steps,
      "steps that sampling made different, in no other figure of this phase (accuracy.md); only where there are some",
      sampled);
    v("all_sampled", p.all_sampled, "every step is like that, so all are counted; goes with `sampled_steps`", sampled);
    v("device", p.device, "only where something ran on a device");
    const bool stamped = p.stamped_steps != 0;
    v("stamped_steps", p.stamped_steps,
      "counted steps whose kernels stamped their own times; goes with the two below, only where there are some",
      stamped);
    v("kernels_per_step_ns", p.kernels_per_step_ns, "a kernel ran, by these stamps", stamped);
    v("kernel_stretch_per_step_ns", p.kernel_stretch_per_step_ns,
      "from the begin of a step's first kernel to the end of its last, by these stamps", stamped);
    v("speed_of_light", p.speed_of_light, "by place; only where bricks state their bytes", !p.speed_of_light.empty());
}

template <class V>
void describe(V& v, const GraphSummary& g) {
    v.type("graph", "One captured graph in one phase.");
    v("phase", g.phase, "");
    v("graph", g.key, "its key, 64 bits without a sign");
    v("source", g.source, "what timed it; empty where nothing did");
    v("replays", g.replays, "in the counted steps");
    v("replays_per_step", g.replays_per_step, "in the counted steps");
    v("sampled_replays", g.sampled_replays, "instrumented ones, warm-up apart");
    v("sites", g.sites, "leaves and laps of one replay");
    v("sites_timed", g.sites_timed, "those that have samples");
    v("sites_ns", g.sites_ns, "of one replay: sum over the sites of the mean of their samples, calibrated");
    v("raw_sites_ns", g.raw_sites_ns, "with the cost of their stamps left in");
    v("plain_span_ns", g.plain_span_ns,
      "median span of plain replays that follow each other, by events outside of them");
    v("closure_raw", g.closure_raw, "(sum of part medians − plain span) / plain span");
    v("closure", g.closure, "the same, calibrated");
    v.pairs("unattributed", "kernel", "nodes", g.unattributed, "nodes in no brick");
}

template <class V>
void describe(V& v, const TrackSummary& t) {
    v.type("track", "A host thread, a device queue or a captured graph.");
    v("id", t.id, "");
    v("name", t.name, "");
    v("device", t.device, "a device queue or a captured graph");
    v("source", t.source, "what timed it");
    v("scopes", t.scopes, "on this track");
    v("total_ns", t.total_ns, "");
    v("sampled_every", t.sampled_every, "its scopes are timed in one step out of so many; only where that is not 1",
      t.sampled_every != 1);
    v("graph", t.graph, "key, where the scopes lie inside replays of a captured graph");
}

template <class V>
void describe(V& v, const LabelTotal& l) {
    v.type("label", "Durations that the program stated itself: untimed, in no coverage and no trace.");
    v("label", l.label, "as the program named it");
    v("count", l.count, "");
    v("total_ns", l.total_ns, "");
    v("min_ns", l.min_ns, "");
    v("max_ns", l.max_ns, "");
}

template <class V>
void describe(V& v, const LossRow& l) {
    v.type("loss", "What was lost.");
    v("reason", l.reason, "in plain words");
    v("count", l.count, "");
}

template <class V>
void describe(V& v, const ClockQuality& c) {
    v.type("clock", "What turned ticks into nanoseconds.");
    v("clock", c.clock, "`tsc`, `monotonic`, `cntvct`, `caller`");
    v("ticks_per_second", c.ticks_per_second, "");
    v("residual_ns", c.residual_ns, "largest distance of a clock pair from the fitted line");
    v("pairs", c.pairs, "clock pairs");
}

template <class V>
void describe(V& v, const ProcessorCounters& c) {
    v.type("counters", "Of the whole process, counted by the processor (roofline.md).");
    v("cycles", c.cycles, "");
    v("instructions", c.instructions, "");
    v("instructions_per_cycle", c.instructions_per_cycle, "");
    v("cache_references", c.cache_references, "");
    v("cache_misses", c.cache_misses, "");
    v("cache_miss_share", c.cache_miss_share, "misses of references");
}

/// What the figures of `peak_fields` are, in its order.
inline constexpr const char* peak_meanings[] = {
    "all cores read memory far larger than the caches",
    "one core does; absent for devices",
    "fused multiply-adds on all cores; one counts 2",
    "on one core; absent for devices",
    "matrix products of bf16 with f32 sums",
    "of one core; absent for devices",
    "of one core; absent for devices",
    "of the place, all caches of that level together",
};
static_assert(std::size(peak_meanings) == std::size(peak_fields));

template <class V>
void describe(V& v, const Peaks& p) {
    v.type("peaks", "What one place where bricks run can do at most (roofline.md).");
    v("place", p.place, "`host`, or backend and index: `cuda:0`");
    v("name", p.name, "of the CPU or device");
    v("uuid", p.uuid, "of the device; empty for the host");
    v("measured_unix_s", p.measured_unix_s, "when, seconds since 1970");
    for (std::size_t i = 0; i < std::size(peak_fields); ++i) {
        v(peak_fields[i].name, page::limited(p.*peak_fields[i].figure, {.above = 0}), peak_meanings[i]);
    }
}

template <class V>
void describe(V& v, const Report& r) {
    v.type("report", "Where the time of a run went, brick by brick (`plumb report`).");
    v.pairs("description", "key", "value", r.description,
            "what ran, in the order given: model, device, threads, layers …; keys `note` and a number are notes by the "
            "user");
    v("phases", r.phases, "one for each phase that has steps");
    v("bricks", r.bricks, "by phase and brick: leaves, parents and laps");
    v("layers", r.layers, "by phase and layer");
    v("brick_layers", r.brick_layers, "by phase, brick and layer; empty unless asked for (`--layers`)");
    v("categories", r.categories, "by phase and category; leaves only");
    const bool graphs = !r.graphs.empty();
    v("graph_bricks", r.graph_bricks, "by phase, captured graph and brick; only where graphs were replayed", graphs);
    v("graphs", r.graphs, "by phase and captured graph; only where graphs were replayed", graphs);
    v("tracks", r.tracks, "host threads, device queues, captured graphs");
    v("labels", r.labels, "durations that the program stated itself");
    v("losses", r.losses, "everything that was lost, by reason; empty where nothing was");
    v("notes", r.notes, "sentences the reader must know");
    v("scopes", r.scopes, "scopes that were given a time");
    v("unresolved", r.unresolved, "scopes that were recorded but have no time");
    v.group("own_cost", "what profiling cost in this run", [&](auto& own) {
        own("scope_ns", r.own_cost.scope_ns, "cost of one, measured on this machine when the run started");
        own("lap_ns", r.own_cost.lap_ns, "the same of a lap");
        own("floor_ns", r.own_cost.floor_ns, "what an empty scope reads");
        own("drain_cpu_ns", r.own_cost.drain_cpu_ns,
            "CPU time of the drain thread, and of the one that serves captured graphs");
        own("wall_share", r.own_cost.wall_share, "scopes × their cost, plus the drain, of the wall clock");
    });
    v("clock", r.clock, "what turned ticks into nanoseconds");
    v("sync_mode", r.sync_mode, "`deferred`, `immediate`, `per_layer` or `none`");
    v("counters", r.counters, "only with `counters=on`");
    v("peaks", r.peaks,
      "what the machine of the run can do at most; empty where `plumb selftest --peaks` was not run on it");
}

constexpr const char* schema_of(const Report&) { return "plumb.report/2"; }
[[nodiscard]] page::Page page_of(const Report& report, const TextOptions& options);

} // namespace plumb
