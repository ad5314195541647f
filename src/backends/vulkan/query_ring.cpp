// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/query_ring.hpp"

#include <algorithm>
#include <array>

namespace plumb::backends::vulkan {
namespace {

Error pending() { return {ErrorCode::pending, "the device has not finished this scope; ask later"}; }

} // namespace

QueryRing::QueryRing(QueueAccess& access, std::uint32_t blocks)
    : access_(access),
      mask_(access.valid_bits() >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << access.valid_bits()) - 1),
      states_(std::size_t{blocks} * block) {
    for (std::uint32_t i = 0; i < blocks; ++i) {
        free_.push_back(i * block);
    }
}

Result<std::unique_ptr<QueryRing>> QueryRing::create(QueueAccess& access, std::uint32_t blocks, CommandPool commands) {
    std::unique_ptr<QueryRing> ring(new QueryRing(access, blocks));
    QueryPoolCreateInfo info;
    info.count = blocks * block;
    const VkResult made = access.calls().create_query_pool(access.device(), &info, nullptr, &ring->pool_);
    if (made != VkResult::success) {
        ring->pool_ = 0;
        return access.failed(made, "vkCreateQueryPool");
    }
    if (Status reset = ring->first_reset(commands); !reset) {
        return reset.error();
    }
    return ring;
}

Status QueryRing::first_reset(CommandPool commands) noexcept {
    const DeviceCalls& calls = access_.calls();
    const auto count = static_cast<std::uint32_t>(states_.size());
    if (access_.host_reset()) {
        calls.host_reset()(access_.device(), pool_, 0, count);
        reset_ = true;
        return {};
    }
    CommandBuffer reset = nullptr; // goes with its pool
    CommandBufferAllocateInfo wanted;
    wanted.pool = commands;
    wanted.count = 1;
    VkResult done = calls.allocate_command_buffers(access_.device(), &wanted, &reset);
    if (done != VkResult::success) {
        return access_.failed(done, "vkAllocateCommandBuffers");
    }
    const CommandBufferBeginInfo begin;
    if (done = calls.begin_command_buffer(reset, &begin); done != VkResult::success) {
        return access_.failed(done, "vkBeginCommandBuffer");
    }
    calls.cmd_reset_query_pool(reset, pool_, 0, count);
    if (done = calls.end_command_buffer(reset); done != VkResult::success) {
        return access_.failed(done, "vkEndCommandBuffer");
    }
    const FenceCreateInfo plain;
    if (done = calls.create_fence(access_.device(), &plain, nullptr, &fence_); done != VkResult::success) {
        fence_ = 0;
        return access_.failed(done, "vkCreateFence");
    }
    Status submitted = access_.submit(reset, fence_);
    reset_ = submitted.ok();
    if (!reset_) {
        calls.destroy_fence(access_.device(), fence_, nullptr);
        fence_ = 0;
    }
    return submitted;
}

QueryRing::~QueryRing() { close(); }

Result<bool> QueryRing::ready() noexcept {
    if (fence_ == 0) {
        return true;
    }
    const VkResult reset = access_.calls().wait_for_fences(access_.device(), 1, &fence_, 1, 0);
    if (reset == VkResult::timeout) {
        return false;
    }
    if (reset != VkResult::success) {
        return access_.failed(reset, "vkWaitForFences");
    }
    access_.calls().destroy_fence(access_.device(), fence_, nullptr);
    fence_ = 0;
    return true;
}

VkResult QueryRing::fetch(std::uint32_t first, std::uint32_t count, Raw* to) noexcept {
    return access_.calls().get_query_results(access_.device(), pool_, first, count, count * sizeof(Raw), to,
                                             sizeof(Raw), result_64_bit | result_with_availability);
}

// At most a block of them.
Status QueryRing::look(std::uint32_t first, std::uint32_t count, Raw* to) noexcept {
    if (pool_ == 0) {
        if (first + count > last_words_.size()) {
            return Error{ErrorCode::unavailable, "this queue was closed before its scope was read; close it later"};
        }
        std::copy_n(last_words_.begin() + first, count, to);
        return {};
    }
    if (!access_.status()) {
        return access_.status();
    }
    const Result<bool> defined = ready();
    if (!defined || !*defined) {
        return defined ? Status(pending()) : Status(defined.error());
    }
    const VkResult asked = fetch(first, count, to);
    return asked == VkResult::success || asked == VkResult::not_ready
               ? Status()
               : Status(access_.failed(asked, "vkGetQueryPoolResults"));
}

Status QueryRing::read_many(std::uint32_t first, std::uint32_t count, std::uint64_t* to) noexcept {
    std::array<Raw, block> raw{};
    if (Status looked = look(first, count, raw.data()); !looked) {
        return looked;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        State& state = states_[first + i];
        to[i] = raw[i].value & mask_;
        if (raw[i].available == 0 || (state.has_old && to[i] == state.old)) {
            return pool_ != 0 ? pending()
                              : Error{ErrorCode::unavailable, "this queue was closed before its scope ran; submit its "
                                                              "command buffer, and close later"};
        }
        state.seen = true;
        state.last = to[i];
    }
    return {};
}

Result<std::uint64_t> QueryRing::read(std::uint32_t query) noexcept {
    std::uint64_t value = 0;
    const Status status = read_many(query, 1, &value);
    return status ? Result<std::uint64_t>(value) : Result<std::uint64_t>(status.error());
}

void QueryRing::settle(std::uint32_t query) noexcept {
    State& state = states_[query];
    if (pool_ != 0 && access_.host_reset()) {
        access_.calls().host_reset()(access_.device(), pool_, query, 1);
    } else if (state.seen) {
        state.old = state.last;
        state.has_old = true;
    }
    state.seen = false;
}

// Whoever had it before may have given up scopes that ran all the same: what lies there now is old.
Result<std::uint32_t> QueryRing::take_block() noexcept {
    if (free_.empty()) {
        return Error{ErrorCode::out_of_memory,
                     "every timestamp query of this queue is in use; collect scopes, and call "
                     "forget() for command buffers that are given up"};
    }
    const std::uint32_t first = free_.front(); // the one that rested longest
    const Result<bool> defined = ready();
    if (!defined) {
        return defined.error();
    }
    std::array<Raw, block> found{};
    if (access_.host_reset()) {
        access_.calls().host_reset()(access_.device(), pool_, first, block);
    } else if (*defined) {
        const VkResult asked = fetch(first, block, found.data());
        if (asked != VkResult::success && asked != VkResult::not_ready) {
            return access_.failed(asked, "vkGetQueryPoolResults");
        }
    }
    free_.pop_front();
    for (std::uint32_t i = 0; i < block; ++i) {
        const bool old = found[i].available != 0;
        states_[first + i] = State{found[i].value & mask_, 0, old, false};
    }
    return first;
}

void QueryRing::close() noexcept {
    if (pool_ == 0) {
        return;
    }
    const DeviceCalls& calls = access_.calls();
    if (const Result<bool> defined = ready(); reset_ && defined && *defined && access_.status()) {
        last_words_.resize(states_.size());
        const VkResult asked = fetch(0, static_cast<std::uint32_t>(states_.size()), last_words_.data());
        if (asked != VkResult::success && asked != VkResult::not_ready) {
            last_words_.clear();
        }
    }
    if (fence_ != 0) {
        calls.destroy_fence(access_.device(), fence_, nullptr);
        fence_ = 0;
    }
    calls.destroy_query_pool(access_.device(), pool_, nullptr);
    pool_ = 0;
}

} // namespace plumb::backends::vulkan
