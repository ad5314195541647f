// SPDX-License-Identifier: Apache-2.0
// What the tests on the device in virtual time share: a timer, and command buffers. Test-only; one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "backends/vulkan/command_timer.hpp"
#include "mocks/virtual_vulkan/virtual_vulkan.hpp"
#include "record/recorder_testing.hpp"

namespace plumb::backends::vulkan {

class VulkanBench : public testing::Test {
  protected:
    explicit VulkanBench(const vvk::Settings& settings = {}) { vvk::reset(settings); }
    ~VulkanBench() override {
        timer_.reset();
        EXPECT_EQ(vvk::alive(), 0u) << "something was left behind";
        EXPECT_EQ(vvk::violations(), 0u) << "Vulkan forbids something that was done";
    }

    VulkanQueueTimer& timer(VulkanHandles handles = vvk::handles()) {
        TimerOptions options;
        options.host_clock = &vvk::host_clock();
        options.max_in_flight = 256;
        auto made = VulkanQueueTimer::create(handles, options);
        EXPECT_TRUE(made.ok()) << made.error().message;
        timer_ = std::move(*made);
        return *timer_;
    }

    /// A command buffer that is being recorded, and its scopes' timer.
    CommandTimer& record(VulkanUse use, CommandBuffer commands) {
        vvk::begin(commands);
        return *timer_->record(commands, use);
    }
    CommandTimer& record(VulkanUse use = VulkanUse::once) { return record(use, commands_ = vvk::new_commands()); }

    /// A dispatch of so many nanoseconds in a scope, behind a barrier.
    DeviceToken scope(CommandTimer& here, std::int64_t ns, const ScopeLabel& label = {}) {
        vvk::barrier(commands_);
        const auto token = here.begin_labelled(label);
        EXPECT_TRUE(token.ok()) << token.error().message;
        vvk::dispatch(commands_, ns);
        EXPECT_TRUE(here.end_labelled(*token, nullptr).ok());
        return *token;
    }
    void submit() {
        vvk::end(commands_);
        vvk::submit(commands_);
    }
    double length_ns(DeviceToken token) {
        const auto span = timer_->collect(token);
        EXPECT_TRUE(span.ok()) << span.error().message;
        const auto elapsed = span ? timer_->duration(*span) : Result<Elapsed>(span.error());
        EXPECT_TRUE(elapsed.ok()) << elapsed.error().message;
        return elapsed ? elapsed->nanoseconds : -1;
    }

    std::unique_ptr<VulkanQueueTimer> timer_;
    CommandBuffer commands_ = nullptr;
};

} // namespace plumb::backends::vulkan
