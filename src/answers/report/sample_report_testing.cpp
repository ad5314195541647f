// SPDX-License-Identifier: Apache-2.0
#include "answers/report/sample_report_testing.hpp"

#include "answers/rendered_testing.hpp"
#include "base/peak_fields.hpp"

namespace plumb::answers {

namespace {

PhaseSummary decode_phase() {
    PhaseSummary phase;
    phase.phase = Phase::decode;
    phase.steps = phase.tokens = phase.decode_tokens = phase.sequences = 120;
    phase.warmup_steps = 8;
    phase.tokens_per_second = measured(20.79);
    phase.period.count = 120;
    phase.period.mean_ns = 48.2e6;
    phase.period.p50_ns = measured(48.1e6);
    phase.period.p90_ns = measured(50.3e6);
    phase.period.p99_ns = missing("too few samples (n = 120, p99 needs 1000)");
    phase.period.p999_ns = missing("too few samples (n = 120, p99.9 needs 10000)");
    phase.span = phase.period;
    phase.wall.period_ns = 120 * 48.0e6;
    phase.wall.busy_ns = 120 * 47.92e6;
    phase.wall.idle_ns = 120 * 0.08e6;
    phase.wall.union_ns = phase.wall.sum_ns = 120 * 47.71e6;
    phase.wall.unattributed_ns = 120 * 0.21e6;
    phase.wall.coverage = measured(47.71 / 47.92);
    return phase;
}

PhaseSummary prefill_phase() {
    PhaseSummary phase;
    phase.phase = Phase::prefill;
    phase.steps = phase.sequences = 1;
    phase.tokens = phase.prefill_tokens = 64;
    phase.tokens_per_second = measured(205.13);
    phase.period.count = 1;
    phase.period.mean_ns = 312e6;
    phase.period.p50_ns = missing("too few samples (n = 1, p50 needs 20)");
    phase.period.p90_ns = missing("too few samples (n = 1, p90 needs 100)");
    phase.wall.period_ns = phase.wall.busy_ns = 312e6;
    phase.wall.union_ns = phase.wall.sum_ns = 310e6;
    phase.wall.unattributed_ns = 2e6;
    phase.wall.coverage = measured(310.0 / 312.0);
    return phase;
}

} // namespace

Row brick_row(Phase phase, const char* name, double calls_per_step, double p50_us, std::uint64_t steps) {
    Row row;
    row.key.phase = phase;
    row.key.name = name;
    row.key.category = Category::ffn;
    row.time.count = static_cast<std::uint64_t>(calls_per_step * static_cast<double>(steps));
    row.time.mean_ns = p50_us * 1e3;
    row.time.total_ns = row.time.self_ns = row.time.mean_ns * static_cast<double>(row.time.count);
    row.time.min_ns = row.time.max_ns = row.time.mean_ns;
    row.time.p50_ns = measured(p50_us * 1e3);
    row.time.p90_ns = measured(p50_us * 1.05e3);
    row.time.p99_ns = row.time.p999_ns = missing("too few samples");
    row.calls_per_step = calls_per_step;
    row.sum_per_step_ns = row.time.mean_ns * calls_per_step;
    row.wall_share = measured(row.sum_per_step_ns / 48.0e6);
    row.gigabytes_per_second = row.bytes_per_call = missing("no work was given");
    row.teraflops = row.flops_per_call = row.elements_per_call = missing("no work was given");
    row.source = "cpu_tsc";
    row.bytes_per_step = missing("no bytes were given");
    row.roof.reason = "no peaks in the recording";
    row.roof.intensity = row.roof.share = row.roof.memory_share = row.roof.compute_share =
        missing("no peaks in the recording");
    return row;
}

Report healthy_report() {
    Report report;
    report.description = {{"model", "qwen2.5-0.5b bf16"}, {"device", "cpu, 2 threads"}, {"layers", "24"}};
    report.phases = {prefill_phase(), decode_phase()};
    Row lm_head = brick_row(Phase::decode, "lm_head", 1, 9120, 120);
    lm_head.gigabytes_per_second = measured(29.85);
    lm_head.bytes_per_call = measured(272e6);
    Row up = brick_row(Phase::decode, "up_projection", 24, 412, 120);
    up.gigabytes_per_second = measured(21.1);
    up.bytes_per_call = measured(8.7e6);
    report.bricks = {brick_row(Phase::decode, "sampling", 1, 4.5, 120), lm_head, up,
                     brick_row(Phase::prefill, "up_projection", 24, 5012, 1)};
    report.bricks[3].wall_share = measured(120.288 / 312);
    report.bricks[3].time.p50_ns = missing("too few samples (n = 24, p50 needs 20)");
    report.own_cost = {measured(17.4), measured(9.1), measured(16.9), measured(2.5e6), measured(0.0012)};
    report.clock = {"tsc", 2.0e9, measured(31.0), 5};
    report.sync_mode = "deferred";
    report.scopes = 3121;
    return report;
}

Report peaks_report() {
    Report report = healthy_report();
    Peaks host;
    host.place = "host";
    host.name = "a CPU";
    host.measured_unix_s = 1'700'000'000;
    for (const PeakField& field : peak_fields) {
        (host.*field.figure) = measured(31.5);
    }
    host.bf16_teraflops = missing("no bf16 here");
    report.peaks = {host};
    report.phases[1].speed_of_light = {
        {"host", measured(0.99e9), measured(31.4e6), measured(0.653), false, 1, {}, {}, {}, {}, "kernel stamps"}};
    report.phases[1].stamped_steps = 3;
    report.phases[1].kernels_per_step_ns = measured(31.5e6);
    report.phases[1].kernel_stretch_per_step_ns = measured(32e6);
    SpeedOfLight& light = report.phases[1].speed_of_light[0];
    light.kernel_excess_ns = light.device_excess_ns = measured(16.7e6);
    light.between_kernels_ns = light.host_ns = missing("of the host");
    Row& lm_head = report.bricks[1];
    lm_head.excess_per_step_ns = measured(0.3e6);
    lm_head.roof = {measured(1), measured(0.948), measured(0.948), measured(0.0625), false, Bottleneck::memory, "95 %"};
    Row& up = report.bricks[2];
    up.roof = {missing("no flops were given"),
               missing("no flops were given"),
               measured(0.41),
               missing("no flops were given"),
               true,
               Bottleneck::cache,
               "fits"};
    report.counters =
        ProcessorCounters{measured(1e9), measured(2.5e9), measured(2.5), measured(4e6), measured(1e6), measured(0.25)};
    report.description.emplace_back("note 1", "zero-copy weights");
    return report;
}

Report crowded_report() {
    Report report = healthy_report();
    Row lap = brick_row(Phase::decode, "rope_embedding", 24, 6.25, 120);
    lap.lap = true;
    Row parent = brick_row(Phase::decode, "block", 24, 1800, 120);
    parent.parent = true;
    parent.teraflops = measured(0.0625);
    report.bricks.push_back(lap);
    report.bricks.push_back(parent);
    report.phases[1].wall.overlap_ns = 120 * 0.5e6;
    report.phases[1].wall.lap_union_ns = 120 * 0.15e6;
    report.phases[1].wall.off_cpu_uncertain_ns = 120 * 0.48e6;
    Row layer = brick_row(Phase::decode, "", 24, 1900, 120);
    layer.key.layer = 0;
    report.layers = {layer};
    for (std::uint32_t index = 0; index < 2; ++index) {
        Row cell = brick_row(Phase::decode, "up_projection", 1, 410 + index, 120);
        cell.key.layer = index;
        report.brick_layers.push_back(cell);
    }
    Row category = brick_row(Phase::decode, "", 26, 731.25, 120); // up_projection, lm_head, sampling
    category.key.track = 1;
    report.categories = {category};
    report.tracks = {{1, "main", false, "cpu_tsc", 3121, 5.7e9}};
    report.labels = {{"tokenizer", 3, 1.5e6, 4e5, 6e5}};
    report.losses = {{"ring full", 12345}, {"lap outside any scope", 1}};
    report.unresolved = 7;
    report.notes = {"not crash-safe: rings are in anonymous memory"};
    return report;
}

Report device_report() {
    Report report = healthy_report();
    report.phases.erase(report.phases.begin());
    report.bricks.clear();
    PhaseSummary& decode = report.phases[0];
    decode.sampled_steps = 17;
    const Figure graphs_too = missing("captured graphs ran in these steps too");
    decode.device = DeviceAccount{17,
                                  measured(1.25e6),
                                  graphs_too,
                                  graphs_too,
                                  graphs_too,
                                  120,
                                  measured(40.5e6),
                                  missing("spans between stamps hold the gaps between kernels")};
    Row inside = brick_row(Phase::decode, "attention", 24, 800, 2);
    inside.device = true;
    inside.basis = RowBasis::replays;
    inside.source = "cuda_graph_event";
    inside.basis_steps = 120;
    inside.sites = inside.sites_timed = 24;
    inside.raw_sum_per_step_ns = measured(19.1e6);
    Row partly = inside;
    partly.key.name = "rms_norm";
    partly.sites_timed = 12;
    partly.sum_per_step_ns = 1e6;
    Row eager = brick_row(Phase::decode, "sampling", 1, 1250, 17);
    eager.device = true;
    eager.basis = RowBasis::timed_steps;
    eager.basis_steps = 17;
    eager.source = "cuda_event";
    eager.launch_wait = 3;
    report.bricks = {inside, partly, eager};
    inside.key.graph = 0xffffffffffffffff;
    report.graph_bricks = {inside};
    GraphSummary graph;
    graph.phase = Phase::decode;
    graph.key = 0xffffffffffffffff;
    graph.source = "cuda_graph_event";
    graph.replays = 120;
    graph.replays_per_step = 1;
    graph.sampled_replays = 2;
    graph.sites = 340;
    graph.sites_timed = 328;
    graph.sites_ns = measured(41e6);
    graph.raw_sites_ns = missing("not calibrated");
    graph.plain_span_ns = measured(40.5e6);
    graph.closure_raw = measured(0.012);
    graph.closure = missing("not calibrated");
    graph.unattributed = {{"nccl \"kernel\"", 3}};
    report.graphs = {graph};
    TrackSummary track{7, "graph 64", true, "cuda_graph_event", 680, 8.2e7};
    track.graph = 0xffffffffffffffff;
    TrackSummary stream{8, "stream", true, "cuda_event", 17, 2e7};
    stream.sampled_every = 8;
    report.tracks = {track, stream};
    return report;
}

} // namespace plumb::answers
