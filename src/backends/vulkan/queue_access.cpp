// SPDX-License-Identifier: Apache-2.0
#include "backends/vulkan/queue_access.hpp"

#include <algorithm>
#include <array>

namespace plumb::backends::vulkan {
namespace {

constexpr const char* no_bits = "this queue family has no valid timestamp bits; time a queue of another family";

} // namespace

Result<QueueAccess> QueueAccess::open(const VulkanHandles& handles, const clock::HostClockSource& host_clock) {
    if (handles.instance == nullptr || handles.physical_device == nullptr || handles.device == nullptr ||
        handles.queue == nullptr) {
        return Error{ErrorCode::invalid_argument,
                     "a handle of this Vulkan queue is null; give instance, physical device, device and queue"};
    }
    FindCall find = handles.get_instance_proc_addr;
    if (find == nullptr) {
        const Result<FindCall>& loaded = loader();
        if (!loaded) {
            return loaded.error();
        }
        find = *loaded;
    }
    const Result<InstanceCalls> instance = InstanceCalls::load(find, handles.instance);
    if (!instance) {
        return instance.error();
    }
    const Result<DeviceCalls> device = DeviceCalls::load(*instance, handles.device);
    if (!device) {
        return device.error();
    }
    std::uint32_t count = 0;
    instance->get_queue_families(handles.physical_device, &count, nullptr);
    std::vector<QueueFamilyProperties> families(count);
    instance->get_queue_families(handles.physical_device, &count, families.data());
    if (handles.queue_family >= count) {
        return Error{ErrorCode::invalid_argument, "this device has no queue family " +
                                                      std::to_string(handles.queue_family) +
                                                      "; give the one that the queue was made from"};
    }
    QueueAccess access(handles, host_clock);
    access.calls_ = *device;
    PhysicalDeviceProperties properties;
    instance->get_properties(handles.physical_device, &properties);
    access.period_ns_ = static_cast<double>(properties.timestamp_period);
    const QueueFamilyProperties& family = families[handles.queue_family];
    access.valid_bits_ = std::min(family.timestamp_valid_bits, 64u);
    if (access.valid_bits_ == 0 || !(access.period_ns_ > 0)) {
        return Error{ErrorCode::unsupported, no_bits};
    }
    if ((family.flags & (queue_graphics | queue_compute)) == 0 && !access.host_reset()) {
        return Error{ErrorCode::unsupported,
                     "a queue that only transfers cannot reset queries; make its device with the "
                     "feature hostQueryReset and say so in VulkanHandles"};
    }
    for (const TimeDomain domain : time_domains(*instance, handles.physical_device)) {
        access.has_device_domain_ |= domain == TimeDomain::device;
        access.has_monotonic_domain_ |= domain == TimeDomain::clock_monotonic;
    }
    return access;
}

std::vector<Capability> capabilities_of(unsigned valid_bits, bool calibrated, bool host_reset) {
    const bool timed = valid_bits != 0;
    return {
        {"timestamps", timed, timed ? "" : no_bits},
        {"calibrated_timestamps", calibrated,
         calibrated
             ? ""
             : "the device was made without VK_KHR_calibrated_timestamps or VK_EXT_calibrated_timestamps: its clock "
               "is fitted to when stamps were submitted and seen, and placed more coarsely"},
        {"host_query_reset", host_reset,
         host_reset ? "" : "hostQueryReset was not asked for: one reset is recorded for every 32 stamps"},
        {"per_dispatch", timed, timed ? "" : no_bits},
        {"graph_capture", false, "Vulkan has no captured graphs; command buffers that run again are VulkanUse::again"},
        {"immediate_in_command_buffer", false,
         "a command buffer runs after it was recorded: its scopes are deferred, those around submissions are not"},
    };
}

std::vector<Capability> QueueAccess::capabilities() const {
    return capabilities_of(valid_bits_, calibrated(), host_reset());
}

Result<RawPair> QueueAccess::calibrated_pair() noexcept {
    const bool ours = host_clock_.kind != clock::HostClockKind::caller && has_monotonic_domain_;
    const std::array<CalibratedTimestampInfo, 2> asked = {
        CalibratedTimestampInfo{StructureType::calibrated_timestamp_info, nullptr, TimeDomain::device},
        CalibratedTimestampInfo{StructureType::calibrated_timestamp_info, nullptr, TimeDomain::clock_monotonic},
    };
    RawPair best;
    for (int attempt = 0; attempt < 3; ++attempt) {
        std::array<std::uint64_t, 2> stamps{};
        std::uint64_t deviation = 0;
        RawPair pair;
        pair.before_ns = now_ns();
        const VkResult read =
            calls_.calibrated()(handles_.device, ours ? 2 : 1, asked.data(), stamps.data(), &deviation);
        pair.after_ns = now_ns();
        if (read != VkResult::success) {
            return failed(read, "vkGetCalibratedTimestamps");
        }
        pair.raw = stamps[0];
        const auto host = static_cast<std::int64_t>(stamps[1]);
        const auto wide = static_cast<std::int64_t>(std::min<std::uint64_t>(deviation, 1'000'000'000));
        // The driver's own bracket, where it is narrower and cause and effect do not contradict it.
        if (ours && host >= pair.before_ns && host <= pair.after_ns && 2 * wide < pair.after_ns - pair.before_ns) {
            pair.before_ns = host - wide;
            pair.after_ns = host + wide;
        }
        if (attempt == 0 || pair.after_ns - pair.before_ns < best.after_ns - best.before_ns) {
            best = pair;
        }
    }
    return best;
}

Status QueueAccess::submit(CommandBuffer commands, Fence fence) noexcept {
    SubmitInfo info;
    info.command_count = 1;
    info.commands = &commands;
    const VkResult submitted = calls_.queue_submit(handles_.queue, 1, &info, fence);
    return submitted == VkResult::success ? Status() : Status(failed(submitted, "vkQueueSubmit"));
}

Error QueueAccess::failed(VkResult result, const char* call) noexcept {
    const bool lost = result == VkResult::device_lost;
    Error error =
        error_of(result, call,
                 lost ? "this Vulkan device cannot be used any more, so nothing is timed on it; make a new one"
                      : "this scope is not timed; see what the validation layers say of the calls before it");
    if (lost && status_.ok()) {
        status_ = error;
    }
    return error;
}

} // namespace plumb::backends::vulkan
