// SPDX-License-Identifier: Apache-2.0
// Eager decode steps on the virtual GPU: the report's device rows, places on the host's clock, and samples by step.
#include <nlohmann/json.hpp>

#include "engine.hpp"

namespace plumb::cuda_test {
namespace {

constexpr int eager_layers = 4;

void run_steps(Engine& engine, int steps) {
    for (int step = 0; step < steps; ++step) {
        PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1), kv_length(step));
        engine.kernel("ahead", 3'000'000); // the host enqueues everything behind it: the device is never short of work
        engine.forward(eager_layers, layer_work);
        engine.wait();
    }
}

TEST(EagerReport, T1_rows_say_what_the_device_did_however_long_the_host_took) {
    vgpu::Config config;
    config.clock_drift_ppm = 24;
    Engine engine(config, "device.every=1,warmup=0");
    run_steps(engine, 40);
    const Report report = engine.report();
    for (const Work& piece : layer_work) {
        const Row* row = Engine::row_of(report, Name(piece.brick).id == 1         ? "rms_norm"
                                                : piece.brick == Brick::attention ? "attention"
                                                                                  : "down_projection");
        ASSERT_NE(row, nullptr);
        EXPECT_EQ(row->source, "cuda_event");
        EXPECT_EQ(row->time.count, 40u * eager_layers);
        EXPECT_DOUBLE_EQ(row->calls_per_step, eager_layers);
        const double slack = 32 + 2.0 * static_cast<double>(config.gap_ns);
        EXPECT_NEAR(row->time.mean_ns, static_cast<double>(piece.kernel_ns) + slack / 2, slack);
        EXPECT_EQ(row->launch_wait, 0u);
    }
    const Row* head = Engine::row_of(report, "lm_head");
    ASSERT_NE(head, nullptr);
    EXPECT_EQ(head->time.count, 40u);
    EXPECT_EQ(report.unresolved, 0u);
    EXPECT_TRUE(report.losses.empty());
    EXPECT_EQ(vgpu::synchronising_calls(), 40u) << "the engine's own, one a step";
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(EagerReport, F1_a_measurement_that_failed_is_absent_and_counted_and_never_a_free_brick) {
    Engine engine({}, "device.every=1,warmup=0");
    run_steps(engine, 10);
    ASSERT_TRUE(engine.profiler().flush().ok());
    vgpu::fail("cuEventElapsedTime", cuda::CuResult::invalid_handle, 5, 6);
    run_steps(engine, 30);
    const Report report = engine.report();
    EXPECT_TRUE(vgpu::all_failures_struck());
    std::uint64_t timed = 0;
    for (const Row& row : report.bricks) {
        if (row.device) {
            timed += row.time.count;
            EXPECT_GE(row.time.min_ns, 20'000 - 64) << row.key.name;
        }
    }
    EXPECT_LT(timed, 40u * (3 * eager_layers + 1));
    EXPECT_EQ(timed + report.unresolved, 40u * (3 * eager_layers + 1));
}

TEST(EagerReport, T2_the_parts_of_a_step_add_up_to_no_more_than_the_step) {
    Engine engine({}, "device.every=1,warmup=0");
    run_steps(engine, 40);
    const Report report = engine.report();
    double sum = 0;
    for (const Row& row : report.bricks) {
        sum += row.device ? row.sum_per_step_ns : 0;
    }
    ASSERT_EQ(report.phases.size(), 1u);
    EXPECT_GT(sum, eager_layers * 260'000.0);
    EXPECT_LT(sum, report.phases[0].span.mean_ns);
}

TEST(EagerReport, F4_scopes_lie_where_the_device_ran_them_on_the_hosts_clock) {
    vgpu::Config config;
    config.clock_drift_ppm = 24;
    Engine engine(config, "device.every=1,warmup=0");
    run_steps(engine, 30);
    ASSERT_TRUE(engine.profiler().close().ok());
    std::vector<std::int64_t> starts; // true, of the kernel that the scope of lm_head holds
    for (const vgpu::Operation& op : vgpu::operations()) {
        if (op.kind == vgpu::OpKind::kernel && std::string(op.name) == "head") {
            starts.push_back(op.start_ns);
        }
    }
    std::stringstream lines;
    ASSERT_TRUE(export_recording(Engine::path(), "jsonl", lines).ok());
    std::string line;
    std::size_t found = 0;
    while (std::getline(lines, line)) {
        const nlohmann::json row = nlohmann::json::parse(line);
        if (row.value("kind", "") != "scope" || row.value("name", "") != "lm_head") {
            continue;
        }
        ASSERT_LT(found, starts.size());
        // Bounded by what a clock pair can know: the device answers some microseconds after it was asked.
        EXPECT_NEAR(row["begin_ns"].get<double>(), static_cast<double>(starts[found]), 4'000.0) << line;
        ++found;
    }
    EXPECT_EQ(found, starts.size());
}

TEST(EagerReport, steps_whose_queues_were_timed_give_the_bricks_and_the_others_the_step) {
    Engine engine({}, "device.every=4,warmup=0");
    run_steps(engine, 80);
    const Report report = engine.report();
    ASSERT_EQ(report.phases.size(), 1u);
    EXPECT_EQ(report.phases[0].sampled_steps, 20u);
    EXPECT_EQ(report.phases[0].steps, 60u);
    const Row* row = Engine::row_of(report, "attention");
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->time.count, 20u * eager_layers);
    EXPECT_DOUBLE_EQ(row->calls_per_step, eager_layers) << "per timed step";
}

TEST(EagerReport, a_device_that_waits_for_the_host_is_flagged_and_not_taken_for_a_slow_one) {
    Engine engine({}, "device.every=1,warmup=0");
    for (int step = 0; step < 30; ++step) {
        PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1));
        engine.forward(eager_layers, {{Brick::rms_norm, 1'000}}); // shorter than its launch takes
        engine.wait();
    }
    const Report report = engine.report();
    const Row* row = Engine::row_of(report, "rms_norm");
    ASSERT_NE(row, nullptr);
    EXPECT_GT(row->launch_wait, row->time.count / 2);
}

} // namespace
} // namespace plumb::cuda_test
