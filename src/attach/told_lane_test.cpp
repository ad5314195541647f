// SPDX-License-Identifier: Apache-2.0
#include "attach/told_lane.hpp"

#include <gtest/gtest.h>

namespace plumb::attach {
namespace {

TEST(ToldLane, gives_each_span_once) {
    ToldLane lane({"a profiler", "a clock"});
    const DeviceToken first = lane.add({10, 20});
    const DeviceToken second = lane.add({20, 20, span_below_floor});
    EXPECT_EQ(lane.in_flight(), 2U);
    ASSERT_TRUE(lane.collect(first).ok());
    const Result<DeviceSpan> span = lane.collect(second);
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->begin_ticks, 20U);
    EXPECT_EQ(span->flags, span_below_floor);
    EXPECT_EQ(lane.collect(second).error().code, ErrorCode::not_found);
    EXPECT_EQ(lane.in_flight(), 0U);
}

TEST(ToldLane, what_was_given_up_goes_with_the_next) {
    ToldLane lane({"a profiler", "a clock"});
    lane.cancel(lane.add({1, 2}));
    const Result<DeviceSpan> span = lane.collect(lane.add({3, 4}));
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->begin_ticks, 3U);
    EXPECT_EQ(lane.in_flight(), 0U);
}

TEST(ToldLane, has_a_bound) {
    ToldLane lane({"a profiler", "a clock"});
    for (std::size_t i = 0; i < ToldLane::most_waiting; ++i) {
        ASSERT_NE(lane.add({i, i}).value, 0U);
    }
    EXPECT_EQ(lane.add({1, 2}).value, 0U);
}

} // namespace
} // namespace plumb::attach
