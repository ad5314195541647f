// SPDX-License-Identifier: Apache-2.0
// What plumb.h hands on to a device in virtual time. CUDA, HIP and graphs: tests/capi/graphs.c.
#include <gtest/gtest.h>

#include "mocks/virtual_vulkan/virtual_vulkan.hpp"
#include "plumb/opencl.hpp"
#include "plumb/plumb.h"
#include "record/queue_registry.hpp"

namespace plumb::capi {
namespace {

plumb_queue no_queue() { return {sizeof(plumb_queue), 0, nullptr}; }

plumb_vulkan_handles virtual_handles() {
    const VulkanHandles of = vvk::handles();
    plumb_vulkan_handles handles{};
    handles.struct_size = sizeof handles;
    handles.queue_family = of.queue_family;
    handles.instance = of.instance;
    handles.physical_device = of.physical_device;
    handles.device = of.device;
    handles.queue = of.queue;
    handles.get_instance_proc_addr =
        reinterpret_cast<decltype(handles.get_instance_proc_addr)>(of.get_instance_proc_addr);
    handles.host_query_reset = of.host_query_reset ? 1 : 0;
    return handles;
}

class VulkanFromC : public testing::Test {
  protected:
    void SetUp() override {
        vvk::reset();
        commands = vvk::new_commands();
        const plumb_vulkan_handles handles = virtual_handles();
        ASSERT_EQ(plumb_open("on,out=none,warmup=0,device.every=1", &profiler), plumb_ok) << plumb_last_error();
        ASSERT_EQ(plumb_vulkan_open(&handles, &vulkan), plumb_ok) << plumb_last_error();
    }
    void TearDown() override {
        EXPECT_EQ(plumb_close(profiler), plumb_ok);
        EXPECT_EQ(vvk::alive(), 0u);
        EXPECT_EQ(vvk::violations(), 0u);
    }
    void brick(const plumb_queue& queue) {
        EXPECT_EQ(plumb_push_scope(profiler, &queue, plumb_brick_attention, nullptr), plumb_ok);
        vvk::dispatch(commands, 5'000);
        EXPECT_EQ(plumb_pop_scope(profiler), plumb_ok);
    }

    plumb_profiler* profiler = nullptr;
    plumb_vulkan* vulkan = nullptr;
    vvk::CommandBuffer commands{};
};

TEST_F(VulkanFromC, scopes_of_a_command_buffer_are_stamped_in_it_at_both_borders) {
    vvk::begin(commands);
    plumb_queue queue = no_queue();
    ASSERT_EQ(plumb_vulkan_record(vulkan, commands, 1, &queue), plumb_ok);
    brick(queue);
    vvk::end(commands);
    EXPECT_EQ(vvk::recorded(commands, "stamp"), 2u);
    for (int run = 0; run < 3; ++run) {
        EXPECT_EQ(plumb_vulkan_submitting(vulkan, profiler, commands), plumb_ok) << plumb_last_error();
        vvk::submit(commands);
        vvk::catch_up();
    }
    EXPECT_EQ(plumb_vulkan_forget(vulkan, commands), plumb_ok);
    EXPECT_EQ(plumb_vulkan_close(vulkan), plumb_ok);
}

TEST_F(VulkanFromC, the_queue_itself_times_what_is_submitted_between) {
    plumb_queue queue = no_queue();
    ASSERT_EQ(plumb_vulkan_queue(vulkan, &queue), plumb_ok);
    EXPECT_NE(queue.timer, nullptr);
    EXPECT_NE(queue.track, 0u);
    EXPECT_EQ(plumb_push_scope(profiler, &queue, plumb_brick_attention, nullptr), plumb_ok);
    EXPECT_EQ(plumb_pop_scope(profiler), plumb_ok);
    vvk::catch_up();
    EXPECT_EQ(plumb_vulkan_close(vulkan), plumb_ok);
}

/// Of a queue whose commands took 10 ticks of the host each.
class TimerOfCommands final : public QueueTimer {
  public:
    Result<DeviceToken> attach(void* event) noexcept override {
        ++attached;
        last = event;
        return DeviceToken{static_cast<std::uint64_t>(attached)};
    }
    Result<DeviceSpan> collect(DeviceToken token) noexcept override {
        DeviceSpan span{};
        span.begin_ticks = token.value * 100;
        span.end_ticks = span.begin_ticks + 10;
        return span;
    }
    Result<DeviceToken> begin() noexcept override { return Error{ErrorCode::unsupported, "commands alone"}; }
    Status end(DeviceToken) noexcept override { return {}; }
    void cancel(DeviceToken) noexcept override {}
    Status wait(DeviceToken) noexcept override { return {}; }
    bool immediate() const noexcept override { return false; }
    const char* source() const noexcept override { return "commands"; }
    std::string clock_name() const override { return "tsc"; }
    bool clock_is_host() const noexcept override { return true; }
    Result<DeviceClockPair> clock_pair() noexcept override { return Error{ErrorCode::unsupported, "the host's"}; }
    Result<Elapsed> duration(const DeviceSpan&) override { return Error{ErrorCode::unsupported, "the host's"}; }
    Result<double> floor_ns() override { return 0.0; }
    std::vector<Capability> capabilities() const override { return {}; }
    std::size_t in_flight() const noexcept override { return 0; }

    int attached = 0;
    void* last = nullptr;
};

TEST(CommandFromC, its_event_goes_to_the_timer_while_recording_and_nowhere_while_off) {
    static TimerOfCommands timer; // the registry's timers live as long as the process
    const plumb_queue queue{sizeof queue, record::register_queue(timer, "commands"), &timer};
    plumb_profiler* profiler = nullptr;
    ASSERT_EQ(plumb_open("on,out=none,warmup=0", &profiler), plumb_ok);
    int event = 0;
    const plumb_work work{sizeof work, 0, 64, 0, 0, 0};
    EXPECT_EQ(plumb_record_command(profiler, &queue, plumb_brick_attention, &event, &work), plumb_ok);
    EXPECT_EQ(timer.last, &event);
    EXPECT_EQ(plumb_flush(profiler, 10), plumb_ok);
    EXPECT_EQ(plumb_disable(profiler), plumb_ok);
    EXPECT_EQ(plumb_record_command(profiler, &queue, plumb_brick_attention, &event, nullptr), plumb_ok);
    EXPECT_EQ(timer.attached, 1);
    EXPECT_EQ(plumb_close(profiler), plumb_ok);
}

TEST(OpenClFromC, a_queue_is_that_of_the_cpp_header) {
    plumb_queue queue = no_queue();
    ASSERT_EQ(plumb_opencl(nullptr, &queue), plumb_ok);
    const Queue same = plumb::opencl(nullptr);
    EXPECT_EQ(queue.timer, same.timer);
    EXPECT_EQ(queue.track, same.track);
}

} // namespace
} // namespace plumb::capi
