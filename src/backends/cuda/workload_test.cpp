// SPDX-License-Identifier: Apache-2.0
// Random workloads on the virtual GPU: several streams and threads, scopes, nested scopes and laps, captures of somebody
// else in between. Every collected scope equals the truth within the tick, or carries the right flag.
#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "backends/cuda/bench_testing.hpp"
#include "support/sanitizers.hpp"

namespace plumb::backends::cuda {
namespace {

/// What the test knows of a scope when it has ended.
struct Expected {
    DeviceToken token;
    std::size_t first_kernel = 0; // of its stream, by order of enqueueing
    std::size_t last_kernel = 0;  // one past
};

struct Player {
    Stream stream = nullptr;
    std::unique_ptr<CudaQueueTimer> timer;
    std::size_t kernels = 0;
    std::vector<Expected> ended;
};

struct Tally {
    std::size_t exact = 0, waited = 0, below = 0, empty = 0;
};

using Kernels = std::vector<vgpu::Operation>;

std::map<std::uint64_t, Kernels> kernels_by_stream() {
    std::map<std::uint64_t, Kernels> by_stream;
    for (const vgpu::Operation& operation : vgpu::operations()) {
        if (operation.kind == vgpu::OpKind::kernel) {
            by_stream[operation.stream_id].push_back(operation);
        }
    }
    return by_stream;
}

/// A scope may hold a gap on each side of its kernels, and nothing else unless it says so.
void check(const DeviceSpan& span, const Expected& expected, const Kernels& kernels, std::int64_t tick, Tally& tally) {
    const auto length = static_cast<std::int64_t>(span.end_ticks - span.begin_ticks);
    if (expected.first_kernel == expected.last_kernel) {
        ++tally.empty;
        return;
    }
    const vgpu::Operation& first = kernels[expected.first_kernel];
    const vgpu::Operation& last = kernels[expected.last_kernel - 1];
    const std::int64_t truth = last.end_ns - first.start_ns;
    const std::int64_t gap = vgpu::config().gap_ns;
    ASSERT_GE(length, truth - tick) << "never shorter than its work";
    if ((span.flags & span_below_floor) != 0) {
        ++tally.below;
        ASSERT_LE(truth, tick);
    }
    if ((span.flags & span_includes_launch_wait) != 0) {
        ++tally.waited;
        return;
    }
    ++tally.exact;
    const auto waits = static_cast<std::int64_t>(expected.last_kernel - expected.first_kernel);
    ASSERT_LE(length, truth + 2 * gap + tick)
        << "more than its work and the gaps around, unflagged; " << waits << " kernels";
}

class Workload {
  public:
    Workload(std::uint64_t seed, std::size_t streams) : random_(seed), config_(random_config()), bench_(config_) {
        TimerOptions options;
        options.max_in_flight = 256;
        for (std::size_t i = 0; i < streams; ++i) {
            Player player;
            player.stream = bench_.new_stream();
            player.timer = bench_.timer(player.stream, options);
            players_.push_back(std::move(player));
        }
    }

    void run(int actions) {
        const Stream foreign = bench_.new_stream();
        bool capturing = false;
        for (int i = 0; i < actions; ++i) {
            act(players_[random_() % players_.size()]);
            if (random_() % 16 == 0) { // somebody else's capture begins or ends
                Graph graph = nullptr;
                ASSERT_EQ(capturing ? bench_.calls().stream_end_capture(foreign, &graph)
                                    : bench_.calls().stream_begin_capture(foreign, CaptureMode::relaxed),
                          CuResult::success);
                capturing = !capturing;
            }
        }
        collect();
    }
    const Tally& tally() const { return tally_; }

  private:
    vgpu::Config random_config() {
        vgpu::Config config;
        config.seed = random_();
        config.event_tick_ns = std::array{32u, 500u, 1'024u}[random_() % 3];
        config.clock_drift_ppm = static_cast<double>(random_() % 101) - 50.0;
        config.launch_ns = 500 + static_cast<std::int64_t>(random_() % 4'000);
        config.gap_ns = static_cast<std::int64_t>(random_() % 1'000);
        return config;
    }

    void work(Player& player) {
        for (std::uint64_t n = random_() % 3; n > 0; --n) {
            bench_.kernel(player.stream, 100 + static_cast<std::int64_t>(random_() % 64) * 700);
            ++player.kernels;
        }
        if (random_() % 4 == 0) {
            vgpu::advance(static_cast<std::int64_t>(random_() % 40'000));
        }
    }

    void act(Player& player) {
        switch (random_() % 4) {
        case 0:
            return scope(player, 0);
        case 1:
            return laps(player);
        case 2: // the device falls behind, so that what follows is not bound by its launches
            bench_.kernel(player.stream, 300'000);
            ++player.kernels;
            return;
        default:
            return random_() % 8 == 0 ? collect() : work(player);
        }
    }

    void scope(Player& player, int depth) {
        const std::size_t first = player.kernels;
        const auto token = player.timer->begin_labelled({});
        ASSERT_TRUE(token.ok()) << token.error().message;
        work(player);
        if (depth < 2 && random_() % 2 == 0) {
            scope(player, depth + 1);
        }
        ASSERT_TRUE(player.timer->end_labelled(*token, nullptr).ok());
        player.ended.push_back({*token, first, player.kernels});
    }

    void laps(Player& player) {
        std::size_t first = player.kernels;
        auto token = player.timer->begin_labelled({});
        for (std::uint64_t n = random_() % 6; n > 0; --n) {
            ASSERT_TRUE(token.ok());
            work(player);
            const DeviceToken before = *token;
            token = player.timer->lap(before, nullptr, {});
            player.ended.push_back({before, first, player.kernels});
            first = player.kernels;
        }
        ASSERT_TRUE(token.ok());
        work(player);
        ASSERT_TRUE(player.timer->end_labelled(*token, nullptr).ok());
        player.ended.push_back({*token, first, player.kernels});
    }

    void collect() {
        vgpu::run_dry();
        const auto kernels = kernels_by_stream();
        for (Player& player : players_) {
            unsigned long long id = 0;
            ASSERT_EQ(bench_.calls().stream_get_id(player.stream, &id), CuResult::success);
            const auto mine = kernels.find(id);
            for (const Expected& expected : player.ended) {
                const auto span = player.timer->collect(expected.token);
                ASSERT_TRUE(span.ok()) << span.error().message;
                check(*span, expected, mine == kernels.end() ? Kernels{} : mine->second,
                      std::max<std::int64_t>(config_.event_tick_ns, 1), tally_);
            }
            player.ended.clear();
            ASSERT_EQ(player.timer->in_flight(), 0u);
        }
    }

    std::mt19937_64 random_;
    vgpu::Config config_;
    VirtualBench bench_;
    std::vector<Player> players_;
    Tally tally_;
};

TEST(Workloads, every_collected_scope_equals_the_truth_within_the_tick_or_is_flagged) {
    Tally all;
    for (std::uint64_t seed = 1; seed <= draws(2'000); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        {
            Workload workload(seed, 1 + seed % 4);
            workload.run(60);
            all.exact += workload.tally().exact;
            all.waited += workload.tally().waited;
            all.below += workload.tally().below;
        }
        ASSERT_FALSE(testing::Test::HasFatalFailure());
        ASSERT_EQ(vgpu::synchronisations().size(), 0u);
        ASSERT_TRUE(vgpu::invalidations().empty()) << vgpu::invalidations().front().call;
        ASSERT_TRUE(vgpu::errors().empty()) << vgpu::errors().front();
    }
    EXPECT_GT(all.exact, draws(10'000)) << "the workloads test something";
    EXPECT_GT(all.waited, draws(10'000));
}

TEST(Workloads, threads_on_streams_of_their_own_with_a_capture_in_global_mode_beside_them) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        vgpu::Config config;
        config.seed = seed;
        VirtualBench bench(config);
        constexpr int threads = 4;
        std::vector<Stream> streams;
        std::vector<std::unique_ptr<CudaQueueTimer>> timers;
        for (int i = 0; i < threads; ++i) {
            streams.push_back(bench.new_stream());
            timers.push_back(bench.timer(streams.back()));
            bench.function_of(1'000 * (i + 1));
        }
        const Stream captured = bench.new_stream();
        ASSERT_EQ(bench.calls().stream_begin_capture(captured, CaptureMode::global), CuResult::success);
        std::atomic<int> wrong{0};
        std::vector<std::thread> workers;
        for (int i = 0; i < threads; ++i) {
            workers.emplace_back([&, i] {
                bench.calls().ctx_push_current(bench.context());
                const auto at = static_cast<std::size_t>(i);
                const std::int64_t ns = 1'000 * (i + 1);
                for (int n = 0; n < 100; ++n) {
                    const auto token = timers[at]->begin_labelled({});
                    wrong += !token.ok();
                    wrong += bench.kernel(streams[at], ns) != CuResult::success;
                    wrong += !timers[at]->end_labelled(*token, nullptr).ok();
                    Result<DeviceSpan> span = timers[at]->collect(*token);
                    while (!span && span.error().code == ErrorCode::pending) {
                        span = timers[at]->collect(*token);
                    }
                    wrong += !span.ok() || span->end_ticks - span->begin_ticks + 32 < static_cast<std::uint64_t>(ns);
                }
            });
        }
        for (int i = 0; i < 50; ++i) {
            bench.kernel(captured, 1'000);
        }
        for (std::thread& worker : workers) {
            worker.join();
        }
        Graph graph = nullptr;
        ASSERT_EQ(bench.calls().stream_end_capture(captured, &graph), CuResult::success);
        EXPECT_EQ(wrong, 0);
        EXPECT_TRUE(vgpu::invalidations().empty()) << vgpu::invalidations().front().call;
        EXPECT_EQ(vgpu::synchronisations().size(), 0u);
        EXPECT_TRUE(vgpu::errors().empty()) << vgpu::errors().front();
    }
}

} // namespace
} // namespace plumb::backends::cuda
