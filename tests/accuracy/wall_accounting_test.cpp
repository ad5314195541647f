// SPDX-License-Identifier: Apache-2.0
// The reference decoder's report against what the test itself planted and measured: shares within one run, never times.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

#include "answers/wall/wall.hpp"
#include "decoder/decoder.hpp"
#include "decoder/model_maker/maker.hpp"
#include "decoder/model_maker/shapes.hpp"
#include "plumb/plumb.hpp"

namespace plumb::decoder {
namespace {

constexpr std::size_t planted_steps = 60;

std::int64_t now_ns(clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return t.tv_sec * std::int64_t{1'000'000'000} + t.tv_nsec;
}

/// What was planted: time on the CPU and off it.
struct Planted {
    double busy_ns = 0;
    double idle_ns = 0;
};

Planted nothing(double) { return {}; }

/// Spins for so much CPU time of this thread.
Planted spin(double cpu_ns) {
    const std::int64_t begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
    std::int64_t spent = 0;
    while (static_cast<double>(spent) < cpu_ns) {
        spent = now_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    }
    return {static_cast<double>(spent), 0};
}

/// Sleeps; going to sleep and waking up take CPU time of their own.
Planted sleep(double ns) {
    const std::int64_t begin = now_ns(CLOCK_MONOTONIC);
    const std::int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    const timespec length{0, static_cast<long>(ns)};
    nanosleep(&length, nullptr);
    const auto busy = static_cast<double>(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu);
    return {busy, static_cast<double>(now_ns(CLOCK_MONOTONIC) - begin) - busy};
}

struct Measured {
    PhaseSummary decode;
    std::map<std::string, double> calls;
    Planted planted;
    double stopwatch_ns = 0; // around the decode, by a clock of our own
    double cpu_ns = 0;       // of this thread in it
};

class WallAccounting : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        folder_ = std::filesystem::temp_directory_path() / ("plumb-accuracy-" + std::to_string(getpid()));
        std::filesystem::create_directories(folder_);
        MakeOptions make;
        make.type = Type::f32;
        make.seed = 1;
        Shape shape = *find_shape("tiny-llama");
        shape.vocabulary = 192000; // steps of many ms: beside them what caches gone cold add to our stamps is small
        const Status made = make_model(shape, (folder_ / "m.gguf").string(), make);
        ASSERT_TRUE(made.ok()) << made.error().message;
    }
    static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

    /// One decode; `plant` is called after each step, outside all bricks, with the mean step so far.
    template <class Plant>
    Measured run(Plant plant) {
        Options options;
        options.threads = 1; // every off-CPU moment is then the machine's or ours, not a barrier's
        options.context = 512;
        Result<Decoder> decoder = Decoder::load((folder_ / "m.gguf").string(), options);
        EXPECT_TRUE(decoder.ok());
        Config config;
        config.on = true;
        config.out = "none";
        config.warmup_steps = 0;
        Profiler profiler(config);
        EXPECT_TRUE(decoder->prefill(decoder->random_prompt(32, 1), profiler).ok());
        EXPECT_TRUE(decoder->decode(8, profiler).ok());
        profiler.reset();
        Measured result;
        const std::int64_t begin = now_ns(CLOCK_MONOTONIC);
        const std::int64_t cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
        double mean_step = 0;
        for (std::size_t i = 0; i < planted_steps; ++i) {
            const std::int64_t cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
            EXPECT_TRUE(decoder->decode(1, profiler).ok());
            mean_step += (static_cast<double>(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) - mean_step) / double(i + 1);
            // After the last step nothing is planted: the last period ends with it.
            const Planted planted = i + 1 < planted_steps ? plant(mean_step) : Planted{};
            result.planted.busy_ns += planted.busy_ns;
            result.planted.idle_ns += planted.idle_ns;
        }
        result.cpu_ns = static_cast<double>(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin);
        result.stopwatch_ns = static_cast<double>(now_ns(CLOCK_MONOTONIC) - begin);
        const Result<Report> report = profiler.snapshot();
        EXPECT_TRUE(report.ok()) << report.error().message;
        layers_ = static_cast<double>(decoder->config().layers);
        for (const PhaseSummary& phase : report->phases) {
            if (phase.phase == Phase::decode) {
                result.decode = phase;
            }
        }
        for (const Row& row : report->bricks) {
            result.calls[row.key.name] = row.calls_per_step;
        }
        return result;
    }

    static inline std::filesystem::path folder_;
    double layers_ = 0;
};

TEST_F(WallAccounting, bricks_cover_the_decode_and_the_parts_add_up) {
    const Measured plain = run(nothing);
    const WallAccount& wall = plain.decode.wall;
    EXPECT_EQ(plain.decode.steps, planted_steps);
    ASSERT_TRUE(wall.coverage.value);
    EXPECT_GE(*wall.coverage.value, 0.99);
    EXPECT_EQ(plain.calls.at("lm_head"), 1.0);
    EXPECT_EQ(plain.calls.at("rms_norm"), 2 * layers_ + 1);
    EXPECT_NEAR((wall.union_ns + wall.unattributed_ns + wall.idle_ns) / wall.period_ns, 1.0, 0.01);
}

TEST_F(WallAccounting, an_outside_stopwatch_agrees_with_tokens_per_second) {
    const Measured plain = run(nothing);
    ASSERT_TRUE(plain.decode.tokens_per_second.value);
    const double outside = static_cast<double>(planted_steps) * 1e9 / plain.stopwatch_ns;
    EXPECT_NEAR(*plain.decode.tokens_per_second.value / outside, 1.0, 0.01);
}

TEST_F(WallAccounting, a_spin_outside_all_bricks_lowers_coverage_and_shows_as_unattributed) {
    const Measured plain = run(nothing);
    const Measured spun = run([](double mean_step) { return spin(mean_step * 0.05 / 0.95); });
    const double share = spun.planted.busy_ns / spun.decode.wall.busy_ns; // 5 % of what the thread did
    EXPECT_NEAR(share, 0.05, 0.02);
    EXPECT_NEAR(*plain.decode.wall.coverage.value - *spun.decode.wall.coverage.value, share, 0.005);
    EXPECT_NEAR(spun.decode.wall.unattributed_ns / spun.decode.wall.busy_ns -
                    plain.decode.wall.unattributed_ns / plain.decode.wall.busy_ns,
                share, 0.005);
}

/// Twice as long a sleep: what waking up costs (caches gone cold, the sleep's own CPU time) is in both, and only its length
/// is not.
TEST_F(WallAccounting, a_sleep_shows_as_idle_and_leaves_coverage_alone) {
    const Measured once = run([](double mean_step) { return sleep(mean_step); });
    const Measured twice = run([](double mean_step) { return sleep(2 * mean_step); });
    for (const Measured* slept : {&once, &twice}) {
        const WallAccount& wall = slept->decode.wall;
        EXPECT_GE(wall.idle_ns, slept->planted.idle_ns * 0.99);
        EXPECT_NEAR(wall.busy_ns / slept->cpu_ns, 1.0, 0.005);
    }
    EXPECT_NEAR(*once.decode.wall.coverage.value, *twice.decode.wall.coverage.value,
                0.02); // counted, it would take a sixth off
}

/// Both of one step: what the account of its period adds up to, and a stopwatch from decode call to decode call.
struct Period {
    double accounted_ns = 0, stopwatch_ns = 0;
};

TEST_F(WallAccounting, wall_accounts_for_each_period_as_an_outside_stopwatch_has_it) {
    Options options;
    options.threads = 1;
    options.context = 512;
    Result<Decoder> decoder = Decoder::load((folder_ / "m.gguf").string(), options);
    ASSERT_TRUE(decoder.ok());
    Config config;
    config.on = true;
    config.out = (folder_ / "wall.plumb").string();
    config.warmup_steps = 0;
    std::vector<double> laps;
    {
        Profiler profiler(config);
        ASSERT_TRUE(decoder->prefill(decoder->random_prompt(32, 1), profiler).ok());
        ASSERT_TRUE(decoder->decode(8, profiler).ok());
        std::int64_t last = now_ns(CLOCK_MONOTONIC);
        for (std::size_t i = 0; i < planted_steps; ++i) {
            ASSERT_TRUE(decoder->decode(1, profiler).ok());
            const std::int64_t now = now_ns(CLOCK_MONOTONIC);
            laps.push_back(static_cast<double>(now - last));
            last = now;
        }
    }
    WallOptions wanted;
    wanted.phase = Phase::decode;
    wanted.slowest = 1000;
    Result<WallReport> wall = read_wall({config.out}, wanted);
    ASSERT_TRUE(wall.ok()) << wall.error().message;
    ASSERT_EQ(wall->slowest.size(), planted_steps + 8);
    std::sort(wall->slowest.begin(), wall->slowest.end(),
              [](const WallStep& a, const WallStep& b) { return a.step < b.step; });
    Period all;
    std::size_t beyond = 0;
    for (std::size_t i = 0; i < planted_steps; ++i) {
        const WallLane& host = wall->slowest.at(i + 8).account.lanes.at(0);
        const WallIdle& idle = host.idle;
        const Period one{host.bricks_ns + *host.unattributed_ns.value + *idle.for_device.value + *idle.unknown.value,
                         laps.at(i)};
        beyond += std::abs(one.accounted_ns / one.stopwatch_ns - 1) > 0.005 ? 1 : 0;
        all.accounted_ns += one.accounted_ns;
        all.stopwatch_ns += one.stopwatch_ns;
    }
    EXPECT_NEAR(all.accounted_ns / all.stopwatch_ns, 1.0, 0.005);
    // A thread that lost the CPU between the step's end and the stopwatch differs, and so does the step behind it: on a busy machine a few.
    EXPECT_LE(beyond, planted_steps / 4) << "of " << planted_steps << " periods";
}

} // namespace
} // namespace plumb::decoder
