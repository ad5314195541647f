// SPDX-License-Identifier: Apache-2.0
#include "attach/onnxruntime/lane.hpp"

#include <gtest/gtest.h>
#include <thread>

namespace plumb::attach::onnxruntime {
namespace {

TEST(LaneOfThread, is_one_for_each_thread_and_that_of_an_ended_one_is_used_again) {
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
