// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/lane.hpp"

#include <gtest/gtest.h>
#include <thread>

namespace plumb::attach::onnxruntime {
namespace {

TEST(ThreadLane, gives_each_span_once) {
    ThreadLane lane;
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

TEST(ThreadLane, what_was_given_up_goes_with_the_next) {
    ThreadLane lane;
    lane.cancel(lane.add({1, 2}));
    const Result<DeviceSpan> span = lane.collect(lane.add({3, 4}));
    ASSERT_TRUE(span.ok());
    EXPECT_EQ(span->begin_ticks, 3U);
    EXPECT_EQ(lane.in_flight(), 0U);
}

TEST(ThreadLane, has_a_bound) {
    ThreadLane lane;
    for (std::size_t i = 0; i < ThreadLane::most_waiting; ++i) {
        ASSERT_NE(lane.add({i, i}).value, 0U);
    }
    EXPECT_EQ(lane.add({1, 2}).value, 0U);
}

TEST(ThreadLane, is_one_for_each_thread_and_that_of_an_ended_one_is_used_again) {
    const Queue own = lane_of_thread();
    EXPECT_EQ(lane_of_thread().track, own.track);
    Queue first;
    Queue second;
    std::thread([&first] { first = lane_of_thread(); }).join();
    std::thread([&second] { second = lane_of_thread(); }).join();
    EXPECT_NE(first.track, own.track);
    EXPECT_EQ(second.track, first.track);
}

} // namespace
} // namespace plumb::attach::onnxruntime
