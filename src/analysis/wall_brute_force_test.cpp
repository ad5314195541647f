// SPDX-License-Identifier: Apache-2.0
// The wall account against an independent one: a map of every single nanosecond, filled while random threads are
// simulated. Whole nanoseconds are even, since a planted tick is 2 ns.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "analysis/planted_report_testing.hpp"

namespace plumb::analysis {
namespace {

using planted::Tape;

constexpr std::int64_t length_ns = 12'000'000;
constexpr std::int64_t long_ns = 2 * static_cast<std::int64_t>(long_ticks);

// What is true at each nanosecond.
struct Map {
    std::vector<std::uint8_t> present = std::vector<std::uint8_t>(length_ns); // some thread is on the CPU
    std::vector<std::uint8_t> bricks = std::vector<std::uint8_t>(length_ns);  // how many leaf bricks run
    std::vector<std::uint8_t> laps = std::vector<std::uint8_t>(length_ns);
};

struct Truth {
    std::int64_t period = 0, busy = 0, united = 0, sum = 0, lap_union = 0;
};

// One thread that runs bricks, laps, parents and gaps of random length, is off the CPU at the end of some long ones, and
// is sampled by the recorder's rule.
class Thread {
  public:
    Thread(Tape& source, Map& map, std::uint32_t track, bool preempted, std::mt19937_64& random)
        : source_(source), map_(map), track_(track), preempted_(preempted), random_(random) {}

    [[nodiscard]] bool over(std::int64_t end) const { return now_ >= end; }
    [[nodiscard]] std::int64_t now() const { return now_; }

    void start(std::int64_t at) {
        now_ = quiet_since_ = at;
        sample();
    }
    void sample() {
        source_.cpu_time(track_, now_, now_ - off_);
        quiet_since_ = now_;
    }
    void act(std::int64_t end) {
        const auto choice = random_() % 20;
        if (choice == 0) {
            wait();
        } else if (choice == 1) {
            scope(long_length(), true);
        } else if (choice < 5) {
            gap(short_length());
        } else if (choice == 5) {
            parent(end);
        } else if (choice < 8) {
            laps();
        } else {
            scope(short_length(), false);
        }
    }
    void gap(std::int64_t length) { pass(length, false, nullptr); }

  private:
    std::int64_t short_length() { return 2 * static_cast<std::int64_t>(50 + random_() % 10'000); }
    std::int64_t long_length() { return 2 * static_cast<std::int64_t>(300'000 + random_() % 300'000); }

    // Woken, a thread goes on: a waiting gap is not followed by more gap.
    void wait() {
        pass(long_length(), true, nullptr);
        scope(short_length(), false);
    }
    void pass(std::int64_t length, bool may_wait, std::vector<std::uint8_t>* what) {
        length = std::min(length, length_ns - now_ - 2);
        std::int64_t off = 0;
        if (may_wait && length > long_ns) {
            off = 2 * static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(length / 2));
        } else if (preempted_ && random_() % 50 == 0) {
            off = std::min<std::int64_t>(length, 1000);
        }
        for (std::int64_t t = now_; t < now_ + length; ++t) {
            const auto at = static_cast<std::size_t>(t);
            if (t < now_ + length - off) {
                map_.present[at] = 1;
            }
            if (what != nullptr) {
                ++(*what)[at];
            }
        }
        now_ += length;
        off_ += off;
    }
    void begin() {
        if (now_ - quiet_since_ >= long_ns) {
            sample();
        }
    }
    void ended(std::int64_t begun) {
        if (now_ - begun >= long_ns) {
            sample();
        }
        quiet_since_ = now_;
    }
    void scope(std::int64_t length, bool may_wait) {
        begin();
        const std::int64_t begun = now_;
        pass(length, may_wait, &map_.bricks);
        source_.scope(track_, Brick::attention, begun, now_);
        ended(begun);
    }
    void laps() {
        begin();
        for (int i = 0; i < 3; ++i) {
            const std::int64_t begun = now_;
            pass(short_length(), false, &map_.laps);
            source_.lap(track_, Brick::rope_embedding, begun, now_);
            ended(begun);
        }
    }
    void parent(std::int64_t end) {
        begin();
        const std::int64_t begun = now_;
        for (int i = 0; i < 4 && !over(end); ++i) {
            scope(short_length(), false);
            gap(short_length());
        }
        source_.scope(track_, Brick::moe_experts, begun, now_);
        ended(begun);
    }

    Tape& source_;
    Map& map_;
    std::uint32_t track_;
    bool preempted_;
    std::mt19937_64& random_;
    std::int64_t now_ = 0;
    std::int64_t off_ = 0;
    std::int64_t quiet_since_ = 0;
};

Truth truth_of(const Map& map, std::int64_t begin, std::int64_t end) {
    Truth truth;
    truth.period = end - begin;
    for (std::int64_t t = begin; t < end; ++t) {
        const auto at = static_cast<std::size_t>(t);
        if (map.present[at] == 0) {
            continue;
        }
        ++truth.busy;
        truth.united += map.bricks[at] != 0 ? 1 : 0;
        truth.sum += map.bricks[at];
        truth.lap_union += map.laps[at] != 0 && map.bricks[at] == 0 ? 1 : 0;
    }
    return truth;
}

// Steps of 0.4 to 1.5 ms on the first thread, and what the other threads do meanwhile.
void compare(std::uint64_t seed, std::uint32_t threads, bool preempted, double tolerance) {
    std::mt19937_64 random(seed);
    Tape source;
    Map map;
    for (std::uint32_t track = 1; track <= threads; ++track) {
        source.track(track);
    }
    Thread main(source, map, 1, preempted, random);
    main.start(2000);
    std::int64_t first_begin = -1;
    std::int64_t last_end = 0;
    for (std::uint64_t step = 0; main.now() < length_ns - 4'000'000; ++step) {
        main.sample();
        const std::int64_t begin = main.now();
        source.step_begin(1, step, Phase::decode, begin);
        const std::int64_t end = begin + 400'000 + 2 * static_cast<std::int64_t>(random() % 500'000);
        while (!main.over(end)) {
            main.act(end);
        }
        source.step_end(1, Phase::decode, begin, main.now());
        last_end = main.now();
        main.sample();
        first_begin = first_begin < 0 ? begin : first_begin;
        if (random() % 2 == 0) {
            main.gap(2000);
        }
    }
    for (std::uint32_t track = 2; track <= threads; ++track) {
        Thread worker(source, map, track, preempted, random);
        worker.start(10'000);
        while (!worker.over(length_ns - 10'000)) {
            worker.act(length_ns);
            if (random() % 100 == 0) {
                source.deliver(track);
            }
        }
        worker.sample();
    }
    const Truth truth = truth_of(map, first_begin, last_end);
    const Report report = report_of(source);
    ASSERT_EQ(report.phases.size(), 1u);
    const WallAccount& wall = report.phases[0].wall;
    EXPECT_EQ(wall.union_ns + wall.unattributed_ns, wall.busy_ns);
    EXPECT_EQ(wall.busy_ns + wall.idle_ns, wall.period_ns);
    EXPECT_EQ(wall.sum_ns - wall.union_ns, wall.overlap_ns);
    EXPECT_EQ(wall.period_ns, static_cast<double>(truth.period));
    const double slack = tolerance * static_cast<double>(truth.period);
    EXPECT_NEAR(wall.busy_ns, static_cast<double>(truth.busy), slack) << seed;
    EXPECT_NEAR(wall.union_ns, static_cast<double>(truth.united), slack) << seed;
    EXPECT_NEAR(wall.sum_ns, static_cast<double>(truth.sum), threads * slack) << seed;
    EXPECT_NEAR(wall.lap_union_ns, static_cast<double>(truth.lap_union), slack) << seed;
}

TEST(WallBruteForce, one_thread_agrees_to_the_nanosecond) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        compare(seed, 1, false, 0);
    }
}

TEST(WallBruteForce, three_threads_agree_to_the_nanosecond) {
    for (std::uint64_t seed = 21; seed <= 32; ++seed) {
        compare(seed, 3, false, 0);
    }
}

TEST(WallBruteForce, preempted_threads_agree_within_one_percent) {
    for (std::uint64_t seed = 41; seed <= 52; ++seed) {
        compare(seed, 3, true, 0.01);
    }
}

} // namespace
} // namespace plumb::analysis
