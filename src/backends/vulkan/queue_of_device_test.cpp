// SPDX-License-Identifier: Apache-2.0
// plumb::vulkan() as an engine uses it: on the machine's own driver where there is one.
#include <gtest/gtest.h>

#include <utility>

#include "backends/vulkan/real_engine_testing.hpp"
#include "mocks/virtual_vulkan/virtual_vulkan.hpp"
#include "plumb/backend.hpp"
#include "plumb/vulkan.hpp"
#include "record/recorder_testing.hpp"

namespace plumb::backends::vulkan {
namespace {

TEST(VulkanQueue, M8_a_queue_that_cannot_be_timed_says_why_and_drops_its_scopes) {
    VulkanQueue queue = plumb::vulkan({});
    ASSERT_FALSE(queue.status().ok());
    EXPECT_EQ(queue.status().error().code, ErrorCode::invalid_argument);
    for (const Queue one : {queue.queue(), queue.record(nullptr)}) {
        ASSERT_NE(one.timer, nullptr);
        EXPECT_FALSE(one.timer->begin().ok());
    }
    plumb::record::TestRecorder recorder;
    EXPECT_TRUE(queue.submitting(recorder, nullptr).ok());
    queue.forget(nullptr);
    EXPECT_EQ(queue.unread(), 0u);
}

TEST(VulkanQueue, those_that_cannot_be_timed_do_not_use_up_the_bound) {
    for (int i = 0; i < 2'000; ++i) {
        ASSERT_EQ(plumb::vulkan({}).status().error().code, ErrorCode::invalid_argument);
    }
}

TEST(VulkanQueue, a_closed_queue_is_refused_and_a_moved_one_goes_on) {
    vvk::reset();
    VulkanQueue first = plumb::vulkan(vvk::handles());
    ASSERT_TRUE(first.status().ok()) << first.status().error().message;
    VulkanQueue queue = std::move(first);
    const CommandBuffer commands = vvk::new_commands();
    vvk::begin(commands);
    const Queue here = queue.record(commands);
    EXPECT_EQ(here.track, queue.queue().track);
    EXPECT_TRUE(here.timer->begin().ok());
    queue.close();
    EXPECT_EQ(vvk::alive(), 0u);
    EXPECT_FALSE(here.timer->begin().ok());
    EXPECT_FALSE(queue.record(commands).timer->begin().ok());
    EXPECT_FALSE(queue.queue().timer->begin().ok());
}

TEST(VulkanQueue, on_a_real_driver_a_command_buffer_runs_again_and_again_and_each_run_is_timed) {
    std::string why;
    const std::unique_ptr<RealEngine> engine = RealEngine::create(why);
    if (engine == nullptr) {
        GTEST_SKIP() << why;
    }
    plumb::record::TestRecorder recorder;
    VulkanQueue gpu = plumb::vulkan(engine->handles());
    ASSERT_TRUE(gpu.status().ok()) << gpu.status().error().message;
    engine->set_rounds(10'000);
    VkCommandBuffer_T* const commands = engine->new_commands();
    engine->begin(commands, false);
    const Queue queue = gpu.record(commands, VulkanUse::again);
    for (int i = 0; i < 3; ++i) {
        PLUMB_BRICK(recorder, queue, Brick::attention, bytes(64));
        engine->dispatch(commands);
        engine->barrier(commands);
    }
    engine->end(commands);
    std::size_t spans = 0;
    std::uint64_t last = 0;
    for (int run = 0; run < 10; ++run) {
        ASSERT_TRUE(gpu.submitting(recorder, commands).ok());
        ASSERT_TRUE(engine->submit_and_wait(commands));
        for (const auto& [track, records] : recorder.take_tracks()) {
            for (const Record& one : records) {
                if (kind_of(one) != RecordKind::device_scope) {
                    continue;
                }
                const auto span = queue.timer->collect(DeviceToken{one.first});
                ASSERT_TRUE(span.ok()) << span.error().message;
                EXPECT_GE(span->begin_ticks, last);
                EXPECT_LT(span->begin_ticks, span->end_ticks);
                last = span->end_ticks;
                ++spans;
            }
        }
    }
    EXPECT_EQ(spans, 30u);
    EXPECT_EQ(gpu.unread(), 0u);
}

} // namespace
} // namespace plumb::backends::vulkan
