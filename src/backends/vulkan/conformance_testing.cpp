// SPDX-License-Identifier: Apache-2.0
// The vulkan backend before the conformance suite (tests/conformance): on a device in virtual time, whose every call can be
// made to fail. What a real driver does is tested in lavapipe_test.cpp.
#include <mutex>

#include "backends/vulkan/queue_timer.hpp"
#include "conformance/subject.hpp"
#include "mocks/virtual_vulkan/virtual_vulkan.hpp"

namespace plumb::conformance {
namespace {

using backends::vulkan::VulkanQueueTimer;

class VulkanSubject final : public Subject {
  public:
    VulkanSubject() {
        vvk::Settings settings;
        settings.valid_bits = 40;
        settings.period_ns = 4;
        settings.drift_ppm = 24;
        vvk::reset(settings);
    }

    Result<std::unique_ptr<QueueTimer>> make_timer(const TimerOptions& options) override {
        TimerOptions virtual_time = options;
        virtual_time.host_clock = &vvk::host_clock();
        Result<std::unique_ptr<VulkanQueueTimer>> timer = VulkanQueueTimer::create(vvk::handles(), virtual_time);
        return timer ? Result<std::unique_ptr<QueueTimer>>(std::move(*timer)) : timer.error();
    }
    void work(std::int64_t ns) override {
        const std::lock_guard lock(mutex_);
        if (commands_ == nullptr) {
            commands_ = vvk::new_commands();
        }
        vvk::begin(commands_);
        vvk::barrier(commands_);
        vvk::dispatch(commands_, ns);
        vvk::end(commands_);
        vvk::submit(commands_);
    }
    void settle() override { vvk::catch_up(); }
    std::int64_t host_ns() const override { return vvk::now_ns(); }

    // Left out: what gives things back, and what is asked only to know more.
    std::vector<std::string> calls() const override {
        return {"vkCreateQueryPool",        "vkCreateCommandPool",
                "vkAllocateCommandBuffers", "vkBeginCommandBuffer",
                "vkEndCommandBuffer",       "vkCreateFence",
                "vkWaitForFences",          "vkQueueSubmit",
                "vkGetQueryPoolResults",    "vkGetCalibratedTimestampsEXT"};
    }
    void fail(const std::string& call, unsigned use) override { vvk::fail(call, use); }
    bool has_failed() const override { return vvk::has_failed(); }
    std::size_t resources() const override { return vvk::alive(); }

  private:
    std::mutex mutex_;
    vvk::CommandBuffer commands_ = nullptr;
};

} // namespace

std::unique_ptr<Subject> vulkan_subject();
std::unique_ptr<Subject> vulkan_subject() { return std::make_unique<VulkanSubject>(); }

} // namespace plumb::conformance
