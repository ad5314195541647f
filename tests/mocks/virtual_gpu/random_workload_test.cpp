// SPDX-License-Identifier: Apache-2.0
// Seeded workloads of any shape: what must hold of every one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

class Workload {
  public:
    explicit Workload(std::uint64_t seed) : random_(seed), engine_(config_of(seed)) {
        kernel("k", {{}, 100, 40'000, [this](const KernelRun& run) {
                         ends_.push_back(run.end_ns);
                     }});
        for (int i = 0; i < 3; ++i) {
            streams_.push_back(engine_.stream(pick(2) == 0 ? stream_non_blocking : event_default));
        }
        for (int i = 0; i < 6; ++i) {
            events_.push_back(engine_.event());
        }
        capture();
    }

    void run(int steps) {
        for (int i = 0; i < steps; ++i) {
            step();
        }
        run_dry();
    }

    void check() {
        std::map<std::uint64_t, std::int64_t> tails; // by stream, of eager work and whole replays
        std::map<Event, Operation> newest;
        std::vector<std::int64_t> kernel_ends;
        for (const Operation& operation : operations()) {
            EXPECT_GE(operation.start_ns, operation.submit_ns);
            EXPECT_GE(operation.end_ns, operation.start_ns);
            if (operation.kind == OpKind::kernel) {
                kernel_ends.push_back(operation.end_ns);
            }
            if (operation.event != nullptr) {
                newest[operation.event] = operation;
            }
            if (operation.graph_id != 0 && operation.kind != OpKind::graph) {
                continue;
            }
            EXPECT_GE(operation.start_ns, tails[operation.stream_id]) << operation.name;
            tails[operation.stream_id] = operation.end_ns;
        }
        std::sort(kernel_ends.begin(), kernel_ends.end());
        EXPECT_EQ(ends_, kernel_ends) << "host functions run once each, in the device's order";
        check_elapsed(newest);
        EXPECT_EQ(errors(), std::vector<std::string>{});
    }

  private:
    static Config config_of(std::uint64_t seed) {
        Config config;
        config.seed = seed;
        config.event_tick_ns = seed % 3 == 0 ? 32 : seed % 3 == 1 ? 500 : 1'024;
        config.launch_queue_depth = 3 + static_cast<unsigned>(seed % 5);
        config.clock_drift_ppm = static_cast<double>(seed % 50) - 25;
        return config;
    }
    std::size_t pick(std::size_t n) { return random_() % n; }

    void capture() {
        engine_.cu.stream_begin_capture(streams_[0], CaptureMode::relaxed);
        engine_.launch("k", streams_[0]);
        engine_.cu.event_record_with_flags(events_[4], streams_[0], event_record_external);
        engine_.launch("k", streams_[0]);
        engine_.cu.event_record_with_flags(events_[5], streams_[0], event_record_external);
        ASSERT_EQ(engine_.cu.stream_end_capture(streams_[0], &graph_), ok);
        ASSERT_EQ(engine_.cu.graph_instantiate(&exec_, graph_, 0), ok);
    }

    void step() {
        const Stream stream = streams_[pick(streams_.size())];
        const Event event = events_[pick(4)];
        switch (pick(6)) {
        case 0:
        case 1:
            EXPECT_EQ(engine_.launch("k", stream), ok);
            break;
        case 2:
            EXPECT_EQ(engine_.cu.event_record(event, stream), ok);
            break;
        case 3:
            EXPECT_EQ(engine_.cu.stream_wait_event(stream, event, 0), ok);
            break;
        case 4:
            EXPECT_EQ(engine_.cu.graph_launch(exec_, stream), ok);
            break;
        default:
            advance(static_cast<std::int64_t>(pick(30'000)));
            break;
        }
    }

    void check_elapsed(const std::map<Event, Operation>& newest) {
        for (const auto& [begin, from] : newest) {
            for (const auto& [end, to] : newest) {
                float ms = 0;
                ASSERT_EQ(engine_.cu.event_elapsed_time_v12080(&ms, begin, end), ok);
                const auto true_ns = static_cast<double>(to.start_ns - from.start_ns);
                const double slack = config().event_tick_ns + std::abs(true_ns) * 26e-6 + 1;
                EXPECT_NEAR(ms * 1e6, true_ns, slack);
            }
        }
    }

    std::mt19937_64 random_;
    Engine engine_;
    std::vector<std::int64_t> ends_;
    std::vector<Stream> streams_;
    std::vector<Event> events_;
    Graph graph_ = nullptr;
    GraphExec exec_ = nullptr;
};

TEST(RandomWorkloads, keep_order_and_time) {
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Workload workload(seed);
        workload.run(120);
        workload.check();
        if (testing::Test::HasFailure()) {
            return;
        }
    }
}

TEST(RandomWorkloads, are_the_same_each_time) {
    const auto once = [] {
        Workload workload(7);
        workload.run(200);
        return operations();
    };
    const auto first = once(), second = once();
    ASSERT_EQ(first.size(), second.size());
    for (std::size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(first[i].start_ns, second[i].start_ns);
        EXPECT_EQ(first[i].end_ns, second[i].end_ns);
    }
}

} // namespace
} // namespace plumb::vgpu
