// SPDX-License-Identifier: Apache-2.0
// Which context has which timeline.
#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/timeline.hpp"

namespace plumb::backends::cuda {
namespace {

struct TimelineEntry {
    const Driver* driver;
    Context context;
    unsigned long long context_id; // a handle may be given out anew
    const HostClock* host_clock;
    std::weak_ptr<Timeline> timeline;
};

struct DeviceTimelines {
    std::mutex making;
    std::size_t clocks = 0; // so far: a name is never given twice
};

struct Timelines {
    std::mutex mutex;
    std::vector<TimelineEntry> entries;
    std::map<std::string, DeviceTimelines> devices; // never erased
};

// Never destroyed: a drain thread may still ask while the process exits.
Timelines& timelines() {
    static Timelines& only = *new Timelines;
    return only;
}

/// The null stream and the two special handles belong to the current context.
bool is_special(Stream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

Result<Context> context_of(const Driver& driver, Stream stream) {
    Context context = nullptr;
    CuResult asked = is_special(stream) ? CuResult::success : driver.context_of(stream, &context);
    if (asked == CuResult::success && context == nullptr) {
        asked = driver.ctx_get_current(&context);
    }
    if (asked != CuResult::success) {
        return error_of(driver, asked, "cuStreamGetCtx",
                        std::string("give a stream that exists, after ") + driver.vendor->api + " was initialised");
    }
    if (context == nullptr) {
        return Error{ErrorCode::unavailable, std::string("no ") + driver.vendor->api +
                                                 " context is current on this thread; make one current, or give a "
                                                 "stream of one"};
    }
    return context;
}

std::mutex& maker_of(const std::string& device) {
    const std::lock_guard lock(timelines().mutex);
    return timelines().devices[device].making;
}

/// Forgets those that are gone or lost.
void sweep(std::vector<TimelineEntry>& entries) {
    const auto gone = [](const TimelineEntry& entry) {
        const std::shared_ptr<Timeline> timeline = entry.timeline.lock();
        return timeline == nullptr || timeline->lost();
    };
    entries.erase(std::remove_if(entries.begin(), entries.end(), gone), entries.end());
}

Result<TimedDevice> device_of(const Driver& driver, Context context) {
    const CurrentContext current(driver, context);
    Device device = 0;
    const CuResult asked = current.status() == CuResult::success ? driver.ctx_get_device(&device) : current.status();
    if (asked != CuResult::success) {
        return error_of(driver, asked, "cuCtxGetDevice", "give a stream of a context that still exists");
    }
    Result<std::string> name = device_name(driver, device);
    return TimedDevice{std::string(driver.vendor->backend) + ":" + std::to_string(device),
                       name ? std::move(*name) : std::string()}; // times do without a name
}

} // namespace

Result<std::shared_ptr<Timeline>> timeline_of(const Driver& driver, Stream stream, const HostClock* host_clock) {
    const RelaxedCapture relaxed(driver);
    const Result<Context> context = context_of(driver, stream);
    if (!context) {
        return context.error();
    }
    unsigned long long id = 0;
    if (driver.ctx_get_id != nullptr && driver.ctx_get_id(*context, &id) != CuResult::success) {
        id = 0;
    }
    Result<TimedDevice> device = device_of(driver, *context);
    if (!device) {
        return device.error();
    }
    const std::string clock = device->clock;
    // Making one takes milliseconds: that holds up only who asks for the same device.
    const std::lock_guard making(maker_of(clock));
    std::size_t made_before = 0;
    {
        const std::lock_guard lock(timelines().mutex);
        sweep(timelines().entries);
        for (const TimelineEntry& entry : timelines().entries) {
            if (entry.driver == &driver && entry.context == *context && entry.context_id == id &&
                entry.host_clock == host_clock) {
                if (std::shared_ptr<Timeline> found = entry.timeline.lock()) {
                    return found;
                }
            }
        }
        made_before = timelines().devices[clock].clocks;
    }
    device->clock += made_before == 0 ? "" : "#" + std::to_string(made_before + 1);
    Result<std::shared_ptr<Timeline>> made = Timeline::create(driver, *context, std::move(*device), host_clock);
    if (made) {
        const std::lock_guard lock(timelines().mutex);
        timelines().entries.push_back({&driver, *context, id, host_clock, *made});
        ++timelines().devices[clock].clocks;
    }
    return made;
}

Result<std::shared_ptr<Timeline>> timeline_of(Stream stream, const HostClock* host_clock) {
    const Result<Driver>& loaded = driver();
    return loaded ? timeline_of(*loaded, stream, host_clock) : Result<std::shared_ptr<Timeline>>(loaded.error());
}

} // namespace plumb::backends::cuda
