// SPDX-License-Identifier: Apache-2.0
// A Vulkan device in virtual time, behind its own vkGetInstanceProcAddr: one queue whose command processor goes through
// submissions in order, dispatches that overlap where no barrier stands between them, timestamp queries that hold garbage
// until they are reset, a clock with offset, drift and N valid bits, and any call can be made to fail. One device exists at
// a time, global to the test process. Thread rule: any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "backends/vulkan/driver_types.hpp"
#include "plumb/clock.hpp"

namespace plumb::vvk {

using namespace backends::vulkan;

struct Settings {
    unsigned valid_bits = 64;
    double period_ns = 1.0;
    std::uint64_t offset_ticks = 1'000'000'000'000;
    double drift_ppm = 0;
    bool calibrated = true; // vkGetCalibratedTimestampsEXT is there
    bool host_reset = true; // vkResetQueryPool is there
    std::uint32_t queue_flags = queue_graphics | queue_compute;
    std::int64_t call_ns = 100;    // host time that a call takes
    std::int64_t submit_ns = 1000; // and a submission
    const char* missing = "";      // an entry point that is not there
};

/// A fresh device; everything from before is gone.
void reset(const Settings& settings = {});
AnyCall get_instance_proc_addr(Instance instance, const char* name);
/// Its one queue, with get_instance_proc_addr.
VulkanHandles handles();

/// Virtual host time, as a host clock whose ticks are its nanoseconds.
const HostClock& host_clock();
std::int64_t now_ns();
void pass(std::int64_t ns);
/// The host goes on to the moment when the queue is empty, without waiting for it.
void catch_up();
/// The device's clock at a moment of host time, all 64 bits of it.
std::uint64_t ticks_at(std::int64_t ns);

/// The `use`-th use of that call from now on answers `result`, once. Use 0: none fails any more.
void fail(const std::string& call, unsigned use, VkResult result = VkResult::out_of_host_memory);
bool has_failed();
/// Pools, fences and command buffers that exist.
std::size_t alive();
/// Waits that could block: vkQueueWaitIdle, vkWaitForFences with a timeout.
std::size_t waits();
/// Uses of the API that Vulkan forbids: a stamp into a query that was not reset, a pool destroyed while in use, …
unsigned violations();
/// Time in which the queue ran dry, between its first dispatch and its last.
std::int64_t idle_ns();

/// The engine's side.
CommandBuffer new_commands();
void begin(CommandBuffer commands); // recorded anew
void dispatch(CommandBuffer commands, std::int64_t ns);
void barrier(CommandBuffer commands);
void end(CommandBuffer commands);
void submit(CommandBuffer commands);
/// Commands of that kind recorded in it: "reset", "stamp".
std::size_t recorded(CommandBuffer commands, const std::string& kind);

} // namespace plumb::vvk
