// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/pace.hpp"

#include <gtest/gtest.h>
#include <vector>

namespace plumb::attach::onnxruntime {
namespace {

/// Runs one after another; gives which were profiled.
std::vector<int> profiled_of(Pace& pace, int runs, std::int64_t plain_ns, std::int64_t profiled_ns) {
    std::vector<int> chosen;
    for (int i = 0; i < runs; ++i) {
        if (pace.next()) {
            chosen.push_back(i);
            pace.profiled(profiled_ns);
        } else {
            pace.plain(plain_ns);
        }
    }
    return chosen;
}

TEST(Pace, a_run_that_is_profiled_comes_behind_the_warm_up_and_a_plain_one) {
    Pace pace(8, 8);
    EXPECT_EQ(profiled_of(pace, 30, 1000, 1010), (std::vector<int>{9, 17, 25}));
}

TEST(Pace, the_first_few_are_profiled_whatever_they_cost) {
    Pace pace(0, 8);
    EXPECT_EQ(profiled_of(pace, 40, 1'000, 1'000'000), (std::vector<int>{1, 9, 17}));
}

TEST(Pace, F2_onnxruntime_what_profiling_adds_stays_below_a_twentieth_of_the_time_in_runs) {
    for (const std::int64_t cost : {100, 1'000, 5'500, 70'000}) {
        Pace pace(0, 8);
        constexpr int runs = 20'000;
        constexpr std::int64_t plain = 1'500;
        const std::vector<int> chosen = profiled_of(pace, runs, plain, plain + cost);
        const auto count = static_cast<std::int64_t>(chosen.size());
        EXPECT_LE(static_cast<double>(count * cost),
                  Pace::most_cost * static_cast<double>(runs * plain + count * cost));
        EXPECT_GT(count, 3) << cost;
        EXPECT_GT(chosen.back(), runs * 3 / 4) << "it goes on";
        const std::size_t at_most = (runs + 7) / 8;
        EXPECT_LE(chosen.size(), at_most);
    }
}

TEST(Pace, one_in_one_is_each_run) {
    Pace pace(8, 1);
    EXPECT_EQ(profiled_of(pace, 4, 1, 1'000'000), (std::vector<int>{0, 1, 2, 3}));
}

TEST(Pace, one_run_is_profiled_at_a_time_and_one_that_was_given_up_is_not_counted) {
    Pace pace(0, 2);
    EXPECT_FALSE(pace.next());
    pace.plain(10);
    EXPECT_TRUE(pace.next());
    EXPECT_FALSE(pace.next()) << "another thread's, meanwhile";
    pace.plain(10);
    pace.given_up();
    EXPECT_TRUE(pace.next());
}

} // namespace
} // namespace plumb::attach::onnxruntime
