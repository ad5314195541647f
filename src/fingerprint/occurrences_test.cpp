// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/occurrences.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

namespace plumb::fingerprint {
namespace {

TEST(Occurrences, T9_are_counted_for_each_place_apart) {
    Occurrences occurrences;
    std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> truth;
    std::mt19937 generator(1);
    const auto random = [&](std::uint32_t below) {
        return std::uniform_int_distribution<std::uint32_t>(0, below - 1)(generator);
    };
    for (std::uint64_t step = 1; step < 400; ++step) {
        for (int i = 0; i < 500; ++i) { // three steps at once
            const std::uint64_t in = step + random(3);
            const std::uint32_t sequence = random(2), layer = random(30), name = random(40);
            EXPECT_EQ(occurrences.next({in, sequence, layer, name}), (truth[{in, sequence, layer, name}]++));
        }
    }
}

TEST(Occurrences, outside_of_steps_go_on_for_ever) {
    Occurrences occurrences;
    for (std::uint32_t i = 0; i < 10; ++i) {
        EXPECT_EQ(occurrences.next({0, 0, 0, 7}), i);
        for (std::uint64_t step = 1; step < 1000; ++step) {
            EXPECT_EQ(occurrences.next({step + i * 1000, 0, 0, 7}), 0u);
        }
    }
}

TEST(Occurrences, outside_of_steps_a_place_is_forgotten_only_behind_many_others) {
    Occurrences occurrences;
    const CheckKey once{0, 0, 1, 7}, often{0, 0, 2, 7};
    EXPECT_EQ(occurrences.next(once), 0u);
    std::uint32_t seen = 0;
    for (std::uint32_t other = 1; other <= 3 * Occurrences::most_outside; ++other) {
        EXPECT_EQ(occurrences.next({0, other, 0, 7}), 0u);
        if (other % 1000 == 0) {
            EXPECT_EQ(occurrences.next(often), seen++);
        }
    }
    EXPECT_EQ(occurrences.next(once), 0u) << "memory has no bound";
}

} // namespace
} // namespace plumb::fingerprint
