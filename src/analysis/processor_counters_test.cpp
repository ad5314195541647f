// SPDX-License-Identifier: Apache-2.0
#include "analysis/processor_counters.hpp"

#include <gtest/gtest.h>

namespace plumb::analysis {
namespace {

recording::Counters four_counters() {
    recording::Counters counters;
    counters.hardware = {{"cycles", 1000}, {"instructions", 2500}, {"cache_references", 400}, {"cache_misses", 100}};
    return counters;
}

TEST(ProcessorCounters, T12_instructions_per_cycle_come_from_counters_alone) {
    EXPECT_DOUBLE_EQ(*processor_counters(four_counters())->instructions_per_cycle.value, 2.5);
    recording::Counters without = four_counters();
    without.hardware.erase(without.hardware.begin()); // no cycles: ticks of a clock must not stand in
    without.hardware_reason = "this machine has no cycle counter";
    const auto counters = processor_counters(without);
    ASSERT_TRUE(counters);
    EXPECT_FALSE(counters->cycles.value);
    EXPECT_FALSE(counters->instructions_per_cycle.value);
    EXPECT_EQ(counters->instructions_per_cycle.reason, "this machine has no cycle counter");
}

TEST(ProcessorCounters, T7_the_miss_rate_is_of_counted_references_or_absent) {
    EXPECT_DOUBLE_EQ(*processor_counters(four_counters())->cache_miss_share.value, 0.25);
    recording::Counters idle = four_counters();
    idle.hardware[2].second = idle.hardware[3].second = 0;
    EXPECT_FALSE(processor_counters(idle)->cache_miss_share.value);
    EXPECT_EQ(processor_counters(idle)->cache_miss_share.reason, "no cache reference was counted");
}

TEST(ProcessorCounters, not_asked_for_is_nothing_and_not_allowed_is_a_reason) {
    EXPECT_FALSE(processor_counters(recording::Counters{}));
    recording::Counters refused;
    refused.hardware_reason = "the system does not allow it";
    const auto counters = processor_counters(refused);
    ASSERT_TRUE(counters);
    for (const Figure* figure : {&counters->cycles, &counters->instructions, &counters->instructions_per_cycle,
                                 &counters->cache_references, &counters->cache_misses, &counters->cache_miss_share}) {
        EXPECT_FALSE(figure->value);
        EXPECT_EQ(figure->reason, "the system does not allow it");
    }
}

} // namespace
} // namespace plumb::analysis
