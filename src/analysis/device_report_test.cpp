// SPDX-License-Identifier: Apache-2.0
// Reports of device queues and captured graphs, against recordings whose truth is known.
#include <gtest/gtest.h>

#include "analysis/planted_report_testing.hpp"
#include "plumb/backend.hpp"

namespace plumb::analysis::device_report_test {
namespace {

using planted::Tape;
using planted::us;

constexpr std::int64_t step_length = 1'000 * us;
constexpr std::uint32_t host = 1, queue = 0x80000001, first_graph_track = 0x80000100;

/// One step each 1,000 us; replays of a graph of two layers (two norms, one attention each) and a head.
class Engine {
  public:
    explicit Engine(std::uint32_t sampled_every = 1) {
        source.track(host);
        recording::TrackInfo info;
        info.id = queue;
        info.kind = recording::TrackKind::device_queue;
        info.name = "stream";
        info.source = "cuda_event";
        info.sampled_every = sampled_every;
        source.device_track(info);
    }

    recording::GraphInfo& graph(std::uint64_t key, const std::string& how = "cuda_graph_event") {
        recording::TrackInfo info;
        info.id = track_of(key);
        info.kind = recording::TrackKind::captured_graph;
        info.name = "graph " + std::to_string(key);
        info.source = how;
        info.graph_key = key;
        source.device_track(info);
        recording::GraphInfo row;
        row.key = key;
        row.track = info.id;
        for (std::uint16_t layer = 1; layer <= 2; ++layer) {
            row.sites.push_back({Name(Brick::rms_norm).id, layer, 0, 1, true, false});
            row.sites.push_back({Name(Brick::attention).id, layer, 0, 1, true, false});
            row.sites.push_back({Name(Brick::rms_norm).id, layer, 1, 1, true, false});
        }
        row.sites.push_back({Name(Brick::lm_head).id, 0, 0, 1, true, false});
        return source.graphs_.emplace_back(row);
    }

    template <class Body>
    void step(Body&& body, Phase phase = Phase::decode) {
        const std::int64_t t = static_cast<std::int64_t>(steps) * step_length;
        source.step_begin(host, steps, phase, t);
        body(t);
        source.step_end(host, phase, t, t + step_length);
        ++steps;
    }
    void plain_replay(std::uint64_t key, std::int64_t t) { source.launch(host, key, 0, queue, t + us, t + 3 * us); }
    /// `layers`: those that this sample holds (rotation). Durations: norm 10 + layer, attention 100, head 50 us.
    void sampled_replay(std::uint64_t key, std::int64_t t, const std::vector<int>& layers, bool head,
                        std::int64_t more = 0) {
        source.launch(host, key, launch_instrumented, queue, t + us, t + 3 * us);
        std::int64_t now = t + 20 * us;
        const auto put = [&](Brick brick, int layer, std::int64_t duration) {
            source.device_scope(track_of(key), brick, steps, layer, now, now + duration);
            now += duration;
        };
        for (const int layer : layers) {
            put(Brick::rms_norm, layer, (10 + layer) * us + more);
            put(Brick::attention, layer, 100 * us + more);
            put(Brick::rms_norm, layer, (10 + layer) * us + more);
        }
        if (head) {
            put(Brick::lm_head, -1, 50 * us + more);
        }
    }
    static std::uint32_t track_of(std::uint64_t key) { return first_graph_track + static_cast<std::uint32_t>(key); }

    Tape source;
    std::uint64_t steps = 0;
};

const Row* graph_row_of(const Report& report, std::uint64_t key, const std::string& name) {
    for (const Row& row : report.graph_bricks) {
        if (row.key.graph == key && row.key.name == name) {
            return &row;
        }
    }
    ADD_FAILURE() << "no row of " << name << " in graph " << key;
    static const Row empty;
    return &empty;
}

TEST(DeviceReport, F6_what_lies_in_no_brick_is_listed_by_name_and_count_in_the_report) {
    Engine engine;
    recording::GraphInfo& graph = engine.graph(7);
    graph.unattributed = {{"rotate_half", 2}, {"lm_head_gemm", 48}};
    for (int i = 0; i < 4; ++i) {
        engine.step([&](std::int64_t t) { engine.plain_replay(7, t); });
    }
    const Report report = report_of(engine.source);
    EXPECT_TRUE(has_note(report, "lie in no brick: lm_head_gemm \xC3\x97"
                                 "48, rotate_half \xC3\x97"
                                 "2."));
    ASSERT_EQ(report.graphs.size(), 1u);
    EXPECT_EQ(report.graphs[0].unattributed.size(), 2u);

    Engine covered;
    covered.graph(7);
    covered.step([&](std::int64_t t) { covered.plain_replay(7, t); });
    EXPECT_FALSE(has_note(report_of(covered.source), "in no brick"));
}

TEST(DeviceReport, sums_per_step_are_replays_times_the_mean_of_each_site_though_layers_rotate) {
    Engine engine;
    engine.graph(64);
    for (int i = 0; i < 40; ++i) {
        engine.step([&](std::int64_t t) {
            if (i % 4 == 3) { // layer 0 three times as often as layer 1
                engine.sampled_replay(64, t, {i % 16 == 15 ? 1 : 0}, true);
            } else {
                engine.plain_replay(64, t);
            }
        });
    }
    const Report report = report_of(engine.source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->steps, 30u);
    EXPECT_EQ(decode->sampled_steps, 10u);
    const Row* norm = row_of(report.bricks, Phase::decode, "rms_norm");
    EXPECT_EQ(norm->source, "cuda_graph_event");
    EXPECT_EQ(norm->basis, RowBasis::replays);
    EXPECT_DOUBLE_EQ(norm->calls_per_step, 4);
    EXPECT_NEAR(norm->sum_per_step_ns, 2 * (10e3 + 11e3), 1e-6);
    EXPECT_EQ(norm->time.count, 20u);
    EXPECT_NEAR(norm->wall_share.value.value(), 0.042, 1e-11);
    EXPECT_EQ(norm->sites, 4u);
    EXPECT_EQ(norm->sites_timed, 4u);
    EXPECT_NEAR(row_of(report.bricks, Phase::decode, "attention")->sum_per_step_ns, 200e3, 1e-6);
    EXPECT_NEAR(row_of(report.bricks, Phase::decode, "lm_head")->sum_per_step_ns, 50e3, 1e-6);
    ASSERT_EQ(report.graphs.size(), 1u);
    EXPECT_EQ(report.graphs[0].replays, 30u);
    EXPECT_EQ(report.graphs[0].sampled_replays, 10u);
    EXPECT_NEAR(report.graphs[0].sites_ns.value.value(), 292e3, 1e-6);
    EXPECT_EQ(report.graphs[0].sites, 7u);
    EXPECT_TRUE(has_note(report, "10 of 40 steps were sampled"));
    EXPECT_EQ(report.unresolved, 0u);
}

TEST(DeviceReport, F11_every_graph_key_has_rows_with_the_time_of_the_device) {
    Engine engine;
    engine.graph(8);
    engine.graph(16, "cuda_graph_stamp");
    for (int i = 0; i < 24; ++i) {
        engine.step([&](std::int64_t t) {
            const std::uint64_t key = i % 3 == 0 ? 16 : 8;
            if (i == 21 || i == 22) {
                engine.sampled_replay(key, t, {0, 1}, true, key == 16 ? 5 * us : 0);
            } else {
                engine.plain_replay(key, t);
            }
        });
    }
    const Report report = report_of(engine.source);
    const Row* small = graph_row_of(report, 8, "attention");
    const Row* large = graph_row_of(report, 16, "attention");
    EXPECT_EQ(small->source, "cuda_graph_event");
    EXPECT_EQ(large->source, "cuda_graph_stamp");
    EXPECT_DOUBLE_EQ(small->time.mean_ns, 100e3);
    EXPECT_DOUBLE_EQ(large->time.mean_ns, 105e3);
    // 15 plain replays of 8 and 7 of 16 in 22 counted steps.
    EXPECT_NEAR(small->sum_per_step_ns, 15 * 200e3 / 22, 1e-6);
    EXPECT_NEAR(large->sum_per_step_ns, 7 * 210e3 / 22, 1e-6);
    EXPECT_NEAR(small->calls_per_step, 15 * 2.0 / 22, 1e-9);
    // Replays are host time plus nothing: what the device did is not in the launch.
    EXPECT_GT(report.graphs[0].sites_ns.value.value(), 290e3);
}

TEST(DeviceReport, the_same_source_in_two_graphs_is_one_row_that_sums_both) {
    Engine engine;
    engine.graph(1);
    engine.graph(2);
    for (int i = 0; i < 12; ++i) {
        engine.step([&](std::int64_t t) {
            if (i >= 10) {
                engine.sampled_replay(i == 10 ? 1 : 2, t, {0, 1}, true, i == 11 ? 10 * us : 0);
            } else {
                engine.plain_replay(1, t);
                engine.plain_replay(2, t + 500 * us);
            }
        });
    }
    const Report report = report_of(engine.source);
    const Row* attention = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_DOUBLE_EQ(attention->calls_per_step, 4);
    EXPECT_NEAR(attention->sum_per_step_ns, 200e3 + 220e3, 1e-6);
    const Row* category = nullptr;
    for (const Row& row : report.categories) {
        category = row.key.category == Category::attention ? &row : category;
    }
    ASSERT_NE(category, nullptr);
    EXPECT_NEAR(category->sum_per_step_ns, 420e3, 1e-6);
}

TEST(DeviceReport, sites_without_samples_are_stated_and_never_zero) {
    Engine engine;
    engine.graph(64);
    engine.graph(128);
    for (int i = 0; i < 10; ++i) {
        engine.step([&](std::int64_t t) {
            if (i == 5) {
                engine.sampled_replay(64, t, {0}, false);
            } else {
                engine.plain_replay(i == 7 ? 128 : 64, t);
            }
        });
    }
    const Report report = report_of(engine.source);
    EXPECT_FALSE(has_row(report.bricks, Phase::decode, "lm_head"));
    EXPECT_TRUE(has_note(report, "never timed there (sites): lm_head"));
    const Row* attention = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_EQ(attention->sites, 2u);
    EXPECT_EQ(attention->sites_timed, 1u);
    EXPECT_TRUE(has_note(report, "attention 1 of 2"));
    EXPECT_TRUE(has_note(report, "no sample of these graphs"));
    EXPECT_TRUE(has_note(report, "128"));
    for (const GraphSummary& graph : report.graphs) {
        if (graph.key == 128) {
            EXPECT_FALSE(graph.sites_ns.value.has_value());
            EXPECT_EQ(graph.sites_timed, 0u);
            EXPECT_EQ(graph.sites, 7u);
        }
    }
}

TEST(DeviceReport, raw_sums_have_the_cost_of_a_stamp_left_in_each_site) {
    Engine engine;
    recording::GraphInfo& info = engine.graph(64);
    info.site_cost_ns = 1'000;
    info.closure = 0.004;
    info.closure_raw = 0.031;
    info.plain_span_ns = 285e3;
    info.unattributed = {{"ncclKernel", 3}, {"memset", 1}};
    for (int i = 0; i < 8; ++i) {
        engine.step([&](std::int64_t t) {
            if (i % 2 == 1) {
                engine.sampled_replay(64, t, {0, 1}, true);
            } else {
                engine.plain_replay(64, t);
            }
        });
    }
    const Report report = report_of(engine.source);
    const Row* norm = row_of(report.bricks, Phase::decode, "rms_norm");
    EXPECT_NEAR(norm->raw_sum_per_step_ns.value.value(), 42e3 + 4e3, 1e-6);
    EXPECT_NEAR(norm->sum_per_step_ns, 42e3, 1e-6) << "samples come without it";
    EXPECT_NEAR(report.graphs[0].raw_sites_ns.value.value(), 292e3 + 7e3, 1e-6);
    EXPECT_TRUE(has_note(report, "closure +0.40 % calibrated, +3.10 % raw; 7 of 7 sites timed"));
    EXPECT_TRUE(has_note(report, "lie in no brick: ncclKernel \xC3\x97"
                                 "3, memset"));
    const DeviceAccount& device = *phase_of(report, Phase::decode)->device;
    EXPECT_NEAR(device.in_graph_busy_per_step_ns.value.value(), 285e3, 1e-6);
    EXPECT_FALSE(device.in_graph_idle_per_step_ns.value.has_value());
    EXPECT_EQ(device.replays, 4u);
}

TEST(DeviceReport, samples_of_a_graph_that_was_replaced_are_left_out_and_said) {
    Engine engine;
    engine.graph(64);
    recording::TrackInfo old; // the same key captured before, with sites that took ten times as long
    old.id = 0x80000800;
    old.kind = recording::TrackKind::captured_graph;
    old.source = "cuda_graph_event";
    old.graph_key = 64;
    engine.source.device_track(old);
    engine.source.graphs_[0].captures = 2;
    for (int i = 0; i < 8; ++i) {
        engine.step([&](std::int64_t t) {
            if (i < 2) {
                engine.source.launch(host, 64, launch_instrumented, queue, t + us, t + 3 * us);
                engine.source.device_scope(old.id, Brick::attention, engine.steps, 0, t + 20 * us, t + 1'020 * us);
            } else if (i % 2 == 1) {
                engine.sampled_replay(64, t, {0, 1}, true);
            } else {
                engine.plain_replay(64, t);
            }
        });
    }
    const Report report = report_of(engine.source);
    const Row* attention = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_NEAR(attention->sum_per_step_ns, 200e3, 1e-6);
    EXPECT_NEAR(report.graphs[0].sites_ns.value.value(), 292e3, 1e-6);
    EXPECT_TRUE(has_note(report, "graph 64 was captured anew and changed: 2 samples"));
    // Nothing was sampled since the last capture: nothing is known.
    engine.source.graphs_[0].track = 0;
    const Report none = report_of(engine.source);
    EXPECT_FALSE(has_row(none.bricks, Phase::decode, "attention"));
    EXPECT_FALSE(none.graphs[0].sites_ns.value.has_value());
}

TEST(DeviceReport, an_uncalibrated_graph_has_no_raw_figure_apart) {
    Engine engine;
    engine.graph(64);
    engine.step([&](std::int64_t t) { engine.plain_replay(64, t); });
    engine.step([&](std::int64_t t) { engine.sampled_replay(64, t, {0, 1}, true); });
    const Report report = report_of(engine.source);
    EXPECT_FALSE(row_of(report.bricks, Phase::decode, "rms_norm")->raw_sum_per_step_ns.value.has_value());
    EXPECT_FALSE(report.graphs[0].closure.value.has_value());
    EXPECT_FALSE(phase_of(report, Phase::decode)->device->in_graph_busy_per_step_ns.value.has_value());
}

TEST(DeviceReport, a_graph_whose_row_is_missing_counts_its_sites_by_its_samples) {
    Engine engine;
    engine.graph(64);
    engine.source.graphs_.clear();
    for (int i = 0; i < 8; ++i) {
        engine.step([&](std::int64_t t) {
            if (i % 2 == 1) {
                engine.sampled_replay(64, t, {0, 1}, true);
            } else {
                engine.plain_replay(64, t);
            }
        });
    }
    const Report report = report_of(engine.source);
    const Row* norm = row_of(report.bricks, Phase::decode, "rms_norm");
    EXPECT_DOUBLE_EQ(norm->calls_per_step, 4);
    EXPECT_NEAR(norm->sum_per_step_ns, 42e3, 1e-6);
}

TEST(DeviceReport, sampled_steps_are_in_no_step_figure_and_no_wall_account) {
    Engine engine(4);
    for (int i = 0; i < 32; ++i) {
        engine.step([&](std::int64_t t) {
            engine.source.scope(host, Brick::sampling, t + 900 * us, t + 900 * us + (i % 4 == 3 ? 90 * us : 10 * us));
            if (i % 4 == 3) {
                engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t + 100 * us, t + 400 * us);
            }
        });
    }
    const Report report = report_of(engine.source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->steps, 24u);
    EXPECT_EQ(decode->sampled_steps, 8u);
    EXPECT_FALSE(decode->all_sampled);
    EXPECT_DOUBLE_EQ(decode->wall.period_ns, 24.0 * step_length);
    EXPECT_DOUBLE_EQ(decode->wall.sum_ns, 24.0 * 10 * us);
    const Row* sampling = row_of(report.bricks, Phase::decode, "sampling");
    EXPECT_EQ(sampling->time.count, 24u);
    EXPECT_DOUBLE_EQ(sampling->time.max_ns, 10e3);
    EXPECT_DOUBLE_EQ(sampling->calls_per_step, 1);
    const Row* attention = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_EQ(attention->basis, RowBasis::timed_steps);
    EXPECT_TRUE(attention->device);
    EXPECT_EQ(attention->basis_steps, 8u);
    EXPECT_DOUBLE_EQ(attention->calls_per_step, 1) << "per step that was timed, not per step";
    EXPECT_DOUBLE_EQ(attention->sum_per_step_ns, 300e3);
    EXPECT_NEAR(attention->wall_share.value.value(), 0.3, 1e-11);
    ASSERT_TRUE(decode->device.has_value());
    EXPECT_EQ(decode->device->steps, 8u);
    EXPECT_DOUBLE_EQ(decode->device->busy_per_step_ns.value.value(), 300e3);
    EXPECT_DOUBLE_EQ(decode->device->idle_per_step_ns.value.value(), 700e3);
}

TEST(DeviceReport, F5_coverage_of_device_busy_counts_all_between_the_first_scope_and_the_last_as_busy) {
    Engine engine(4);
    for (int i = 0; i < 16; ++i) {
        engine.step([&](std::int64_t t) {
            if (i % 4 == 3) {
                engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t + 100 * us, t + 400 * us);
                engine.source.device_scope(queue, Brick::lm_head, engine.steps, 0, t + 440 * us, t + 500 * us);
            }
        });
    }
    const Report report = report_of(engine.source);
    const DeviceAccount& device = *phase_of(report, Phase::decode)->device;
    EXPECT_DOUBLE_EQ(device.busy_per_step_ns.value.value(), 360e3);
    EXPECT_DOUBLE_EQ(device.stretch_per_step_ns.value.value(), 400e3);
    EXPECT_DOUBLE_EQ(device.coverage_at_least.value.value(), 0.9) << "what lies in no scope may have been work";
    EXPECT_EQ(phase_of(report, Phase::decode)->wall.coverage.value.value_or(0), 0) << "that of the host is another";
}

TEST(DeviceReport, what_a_timed_step_left_to_the_device_is_not_busy_in_the_step_after_it) {
    Engine engine(16);
    engine.source.metadata_.warmup_steps = 0;
    for (int i = 0; i < 8; ++i) {
        engine.step([&](std::int64_t t) {
            if (i % 4 == 0) { // the host does not wait for the end of it
                engine.source.device_scope(queue, Brick::lm_head, engine.steps, 0, t + 500 * us, t + 1'300 * us);
            }
        });
    }
    const Report report = report_of(engine.source);
    const PhaseSummary* phase = phase_of(report, Phase::decode);
    EXPECT_EQ(phase->steps, 6u);
    EXPECT_EQ(phase->wall.sum_ns, 0) << "the queue was not timed in these steps";
    EXPECT_EQ(phase->wall.union_ns, 0);
    ASSERT_TRUE(phase->device.has_value());
    EXPECT_EQ(phase->device->busy_per_step_ns.value.value_or(0), 500'000);
}

TEST(DeviceReport, where_every_step_is_sampled_all_count_and_the_report_says_so) {
    Engine engine(4);
    for (int i = 0; i < 4; ++i) {
        engine.step([&](std::int64_t t) {
            engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t, t + 100 * us);
        });
    }
    const Report report = report_of(engine.source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->steps, 4u);
    EXPECT_EQ(decode->sampled_steps, 0u);
    EXPECT_TRUE(decode->all_sampled);
    EXPECT_TRUE(has_note(report, "every step was sampled"));
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "attention")->sum_per_step_ns, 100e3);
}

TEST(DeviceReport, a_queue_that_is_timed_in_every_step_is_part_of_the_wall_account) {
    Engine engine(1);
    for (int i = 0; i < 10; ++i) {
        engine.step([&](std::int64_t t) {
            engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t + 100 * us, t + 400 * us);
            engine.source.device_scope(queue, Brick::lm_head, engine.steps, -1, t + 400 * us, t + 500 * us);
        });
    }
    const Report report = report_of(engine.source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->steps, 10u);
    EXPECT_DOUBLE_EQ(decode->wall.union_ns, 10 * 400e3);
    EXPECT_DOUBLE_EQ(decode->device->busy_per_step_ns.value.value(), 400e3);
    EXPECT_DOUBLE_EQ(decode->device->idle_per_step_ns.value.value(), 600e3);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "attention")->basis, RowBasis::steps);
    EXPECT_FALSE(has_note(report, "sampled"));
}

TEST(DeviceReport, F11_what_a_step_leaves_to_the_device_is_its_own_and_never_busy_in_two_steps) {
    Engine engine(1);
    constexpr int steps = 10;
    for (int i = 0; i < steps; ++i) {
        engine.step([&](std::int64_t t) {
            // Behind by 300 us from the first step on, and never idle afterwards.
            engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t + 300 * us, t + 1'300 * us);
        });
    }
    const Report report = report_of(engine.source);
    const PhaseSummary* decode = phase_of(report, Phase::decode);
    EXPECT_EQ(decode->steps, 10u);
    EXPECT_DOUBLE_EQ(decode->wall.period_ns, 300e3 + steps * 1'000e3)
        << "from the first begin to the device's last end";
    EXPECT_DOUBLE_EQ(decode->device->busy_per_step_ns.value.value(), 1'000e3);
    EXPECT_DOUBLE_EQ(decode->device->idle_per_step_ns.value.value(), 30e3) << "before the first";
    EXPECT_DOUBLE_EQ(decode->span.min_ns, 1'300e3);
    EXPECT_DOUBLE_EQ(decode->span.max_ns, 1'300e3);
    EXPECT_DOUBLE_EQ(row_of(report.bricks, Phase::decode, "attention")->sum_per_step_ns, 1'000e3);
}

TEST(DeviceReport, spans_with_launch_wait_or_below_the_floor_are_counted_per_row_and_explained) {
    Engine engine(1);
    for (int i = 0; i < 10; ++i) {
        engine.step([&](std::int64_t t) {
            engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t, t + 100 * us, 0,
                                       i < 3 ? span_includes_launch_wait : 0);
            engine.source.device_scope(queue, Brick::rms_norm, engine.steps, 0, t + 100 * us, t + 100 * us, 0,
                                       i < 4 ? span_below_floor : 0);
        });
    }
    const Report report = report_of(engine.source);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "attention")->launch_wait, 3u);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "attention")->below_floor, 0u);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "rms_norm")->below_floor, 4u);
    EXPECT_TRUE(has_note(report, "Includes launch wait"));
    EXPECT_TRUE(has_note(report, "attention 3 of 10"));
    EXPECT_TRUE(has_note(report, "rms_norm 4 of 10"));
}

TEST(DeviceReport, commands_of_an_out_of_order_queue_are_flagged_and_only_their_union_is_busy) {
    Engine engine(1);
    for (int i = 0; i < 10; ++i) {
        engine.step([&](std::int64_t t) { // both say that they began at once, and run one after the other
            for (const std::int64_t end : {100 * us, 200 * us}) {
                engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t, t + end, 0, span_may_overlap);
            }
        });
    }
    const Report report = report_of(engine.source);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "attention")->may_overlap, 20u);
    EXPECT_TRUE(has_note(report, "May overlap"));
    EXPECT_TRUE(has_note(report, "attention 20 of 20"));
    EXPECT_DOUBLE_EQ(phase_of(report, Phase::decode)->device->busy_per_step_ns.value.value(), 200e3);
}

TEST(DeviceReport, scopes_cut_by_a_neighbour_are_counted_and_add_up) {
    Engine engine(1);
    for (int i = 0; i < 10; ++i) {
        engine.step([&](std::int64_t t) {
            engine.source.device_scope(queue, Brick::attention, engine.steps, 0, t, t + 100 * us);
            engine.source.device_scope(queue, Brick::rms_norm, engine.steps, 0, t + 100 * us, t + 150 * us, 0,
                                       span_cut_by_neighbour);
        });
    }
    const Report report = report_of(engine.source);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "rms_norm")->cut_by_neighbour, 10u);
    EXPECT_EQ(row_of(report.bricks, Phase::decode, "rms_norm")->may_overlap, 0u);
    EXPECT_TRUE(has_note(report, "Cut by a neighbour"));
    EXPECT_TRUE(has_note(report, "rms_norm 10 of 10"));
    EXPECT_DOUBLE_EQ(phase_of(report, Phase::decode)->device->busy_per_step_ns.value.value(), 150e3);
}

TEST(DeviceReport, a_captured_graph_is_no_thread_whose_cpu_time_is_missing) {
    Engine engine;
    engine.graph(64);
    engine.step([&](std::int64_t t) { engine.plain_replay(64, t); });
    engine.step([&](std::int64_t t) { engine.sampled_replay(64, t, {0, 1}, true); });
    const Report report = report_of(engine.source);
    for (const std::string& note : report.notes) {
        if (note.find("CPU time is not known") != std::string::npos) {
            EXPECT_EQ(note.find("graph 64"), std::string::npos) << note;
        }
    }
    const TrackSummary& track = report.tracks.back();
    EXPECT_TRUE(track.device);
    EXPECT_EQ(track.graph, 64u);
}

TEST(DeviceReport, F10_the_graph_key_is_a_dimension_and_warm_up_stays_apart_in_it) {
    Engine engine;
    engine.graph(0); // the smallest key is no absent one
    for (int i = 0; i < 6; ++i) {
        engine.step([&](std::int64_t t) {
            if (i == 0 || i == 4) {
                engine.sampled_replay(0, t, {0, 1}, true, i == 0 ? 500 * us : 0);
            } else {
                engine.plain_replay(0, t);
            }
        });
    }
    ReportOptions options;
    options.recording_warmup = false;
    options.warmup_steps = 2;
    const Report report = report_of(engine.source, options);
    const Row* attention = graph_row_of(report, 0, "attention");
    EXPECT_DOUBLE_EQ(attention->time.max_ns, 100e3);
    EXPECT_EQ(report.graphs[0].replays, 3u);
    EXPECT_EQ(report.graphs[0].sampled_replays, 1u);
    EXPECT_EQ(phase_of(report, Phase::decode)->sampled_steps, 1u);
    EXPECT_EQ(phase_of(report, Phase::decode)->warmup_steps, 2u);
}

TEST(DeviceReport, a_parent_site_stays_a_parent_where_rotation_left_its_children_out) {
    Engine engine;
    recording::GraphInfo& info = engine.graph(64);
    info.site_cost_ns = 500;
    info.sites.push_back({Name(Brick::attention_score).id, 1, 0, 1, true, false});
    info.sites[1].leaf = false; // attention of layer 0 holds it
    for (int i = 0; i < 4; ++i) {
        engine.step([&](std::int64_t t) {
            if (i == 2) {
                engine.sampled_replay(64, t, {0, 1}, true);
            } else {
                engine.plain_replay(64, t);
            }
        });
    }
    const Report report = report_of(engine.source);
    const Row* attention = row_of(report.bricks, Phase::decode, "attention");
    EXPECT_TRUE(attention->parent);
    EXPECT_FALSE(attention->raw_sum_per_step_ns.value.has_value());
    EXPECT_EQ(report.graphs[0].sites, 7u) << "leaves only";
}

} // namespace
} // namespace plumb::analysis::device_report_test
