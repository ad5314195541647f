// SPDX-License-Identifier: Apache-2.0
// plumb::vulkan() and what a VulkanQueue hands on.
#include <mutex>
#include <string>
#include <utility>

#include "backends/absent_timer.hpp"
#include "backends/vulkan/command_timer.hpp"
#include "plumb/vulkan.hpp"
#include "record/queue_registry.hpp"

namespace plumb {
namespace {

using backends::AbsentTimer;
using backends::vulkan::CommandTimer;
using backends::vulkan::VulkanQueueTimer;

constexpr std::size_t most_queues = 1'024; // engines that make a device per request end here, not in swap
constexpr std::uint32_t scopes_in_flight = 8'192;

struct Made {
    std::mutex mutex;
    std::size_t queues = 0;
    Queue absent{};  // where a queue cannot be timed
    Queue refused{}; // for command buffers beyond the bound, or of a closed queue
};

// Never destroyed: threads may record while the process exits.
Made& made() {
    static Made& only = *new Made;
    return only;
}

Queue absent_queue(Queue& kept, const Error& why) {
    const std::lock_guard lock(made().mutex);
    if (kept.timer == nullptr) {
        auto timer = std::make_unique<AbsentTimer>(why, "vulkan_timestamp", "vulkan:absent");
        kept.track = record::register_queue(*timer, "vulkan (not timed)");
        kept.timer = timer.release(); // the registry's timers live as long as the process
    }
    return kept;
}

Result<std::size_t> another_queue() {
    const std::lock_guard lock(made().mutex);
    if (made().queues >= most_queues) {
        return Error{ErrorCode::out_of_memory, "more than " + std::to_string(most_queues) +
                                                   " Vulkan queues were timed in this process; reuse devices"};
    }
    return ++made().queues;
}

void not_made() {
    const std::lock_guard lock(made().mutex);
    --made().queues;
}

} // namespace

VulkanQueue vulkan(const VulkanHandles& handles) {
    VulkanQueue queue;
    TimerOptions options;
    options.max_in_flight = scopes_in_flight;
    const Result<std::size_t> number = another_queue();
    Result<std::unique_ptr<VulkanQueueTimer>> timer =
        number ? VulkanQueueTimer::create(handles, options) : Result<std::unique_ptr<VulkanQueueTimer>>(number.error());
    if (!timer) {
        if (number) {
            not_made(); // only queues that are timed count
        }
        queue.status_ = timer.error();
        queue.queue_ = absent_queue(made().absent, timer.error());
        return queue;
    }
    queue.timer_ = timer->release(); // drains may still ask it when the device is gone: it answers that it is closed
    queue.queue_.timer = queue.timer_;
    queue.queue_.track = record::register_queue(*queue.timer_, "vulkan queue " + std::to_string(*number));
    return queue;
}

VulkanQueue::VulkanQueue(VulkanQueue&& other) noexcept { *this = std::move(other); }

VulkanQueue& VulkanQueue::operator=(VulkanQueue&& other) noexcept {
    if (this != &other) {
        close();
        timer_ = std::exchange(other.timer_, nullptr);
        queue_ = std::exchange(other.queue_, Queue{});
        status_ = std::exchange(other.status_, Status());
    }
    return *this;
}

Queue VulkanQueue::record(VkCommandBuffer_T* commands, VulkanUse use) noexcept {
    if (timer_ == nullptr) {
        return queue_;
    }
    if (CommandTimer* const timer = timer_->record(commands, use)) {
        return Queue{timer, queue_.track};
    }
    return absent_queue(made().refused,
                        {ErrorCode::out_of_memory, "this queue is closed, or too many command buffers hold scopes that "
                                                   "nobody has collected; call forget() for those that are given up"});
}

Status VulkanQueue::submitting(Recorder& recorder, VkCommandBuffer_T* commands) noexcept {
    return timer_ != nullptr ? timer_->submitting(recorder, commands, queue_.track) : Status();
}

void VulkanQueue::forget(VkCommandBuffer_T* commands) noexcept {
    if (timer_ != nullptr) {
        timer_->forget(commands);
    }
}

std::uint64_t VulkanQueue::unread() const noexcept { return timer_ != nullptr ? timer_->unread() : 0; }

void VulkanQueue::close() noexcept {
    if (timer_ != nullptr) {
        timer_->close();
    }
}

} // namespace plumb
