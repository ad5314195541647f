// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/own_stamps.hpp"

#include <algorithm>
#include <array>

namespace plumb::backends::vulkan {

Result<std::uint32_t> OwnStamps::take() noexcept {
    sweep();
    if (idle_.empty()) {
        if (Status grown = grow(); !grown) {
            return grown.error();
        }
    }
    const Stamp stamp = idle_.back();
    if (Status submitted = access_.submit(stamp.commands, 0); !submitted) {
        return submitted.error();
    }
    idle_.pop_back();
    return stamp.query;
}

void OwnStamps::drop(std::uint32_t query) noexcept {
    if (ring_.seen(query)) {
        ring_.settle(query);
        idle_.push_back(all_[query]);
    } else {
        given_up_.push_back(query);
    }
}

// In the order of submission, which is the device's: the first that is not there yet ends it.
void OwnStamps::sweep() noexcept {
    while (!given_up_.empty() && ring_.read(given_up_.front()).ok()) {
        const std::uint32_t query = given_up_.front();
        given_up_.pop_front();
        drop(query);
    }
}

Status OwnStamps::grow() noexcept {
    const Result<std::uint32_t> first = ring_.take_block();
    if (!first) {
        return first.error();
    }
    std::array<CommandBuffer, QueryRing::block> made{};
    CommandBufferAllocateInfo wanted;
    wanted.pool = commands_;
    wanted.count = QueryRing::block;
    const VkResult allocated = access_.calls().allocate_command_buffers(access_.device(), &wanted, made.data());
    if (allocated != VkResult::success) {
        ring_.give_block(*first);
        return access_.failed(allocated, "vkAllocateCommandBuffers");
    }
    for (std::uint32_t i = 0; i < QueryRing::block; ++i) {
        if (Status recorded = record({made[i], *first + i}); !recorded) {
            ring_.give_block(*first); // nothing was submitted; the buffers go with their pool
            return recorded;
        }
    }
    all_.resize(std::max<std::size_t>(all_.size(), *first + QueryRing::block), Stamp{});
    for (std::uint32_t i = 0; i < QueryRing::block; ++i) {
        all_[*first + i] = {made[i], *first + i};
        idle_.push_back(all_[*first + i]);
    }
    return {};
}

Status OwnStamps::record(const Stamp& stamp) noexcept {
    const DeviceCalls& calls = access_.calls();
    CommandBufferBeginInfo begin;
    begin.flags = simultaneous_use; // its stamp is seen a moment before the driver calls it complete
    if (const VkResult begun = calls.begin_command_buffer(stamp.commands, &begin); begun != VkResult::success) {
        return access_.failed(begun, "vkBeginCommandBuffer");
    }
    if (!access_.host_reset()) {
        calls.cmd_reset_query_pool(stamp.commands, ring_.pool(), stamp.query, 1);
    }
    calls.cmd_write_timestamp(stamp.commands, stage_bottom_of_pipe, ring_.pool(), stamp.query);
    const VkResult ended = calls.end_command_buffer(stamp.commands);
    return ended == VkResult::success ? Status() : Status(access_.failed(ended, "vkEndCommandBuffer"));
}

} // namespace plumb::backends::vulkan
