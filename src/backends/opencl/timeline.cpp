// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/timeline.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace plumb::backends::opencl {
namespace {

constexpr std::int64_t pair_limit_ns = 200'000;     // a busy device is not waited for
constexpr std::int64_t again_limit_ns = 10'000'000; // but a pair told again is no second one: a fit needs two
constexpr std::int64_t floor_limit_ns = 20'000'000; // asked for by selftest alone
constexpr std::int64_t shortest_poll_ns = 10; // the number of polls is bounded too: an injected clock may stand still
constexpr std::int64_t drift_divisor = 5'000; // 200 ppm
constexpr int pair_tries = 4;
constexpr int most_pair_tries = 16;     // until one is as narrow as others were
constexpr std::uint64_t much_wider = 8; // than the narrowest so far: the host was interrupted inside
constexpr const char* clock_unread = "this device's clock cannot be read now; ask later";
constexpr const char* floor_unread = "the floor of this device cannot be measured; ask later";
constexpr const char* check_calls = "this scope is not timed; check the OpenCL calls before it";

Error pending() { return {ErrorCode::pending, "the device has not finished this scope; ask later"}; }

} // namespace

OpenClTimeline::OpenClTimeline(const OpenClDriver& driver, Context context, DeviceId device,
                               const HostClock* host_clock)
    : driver_(driver), context_(context), device_(device), host_clock_(clock::host_clock(host_clock)) {}

Result<std::unique_ptr<OpenClTimeline>> OpenClTimeline::create(const OpenClDriver& driver, Context context,
                                                               DeviceId device, const HostClock* host_clock) {
    std::unique_ptr<OpenClTimeline> timeline(new OpenClTimeline(driver, context, device, host_clock));
    if (Status opened = timeline->open(); !opened) {
        return opened.error();
    }
    // While the device may still be idle: a short run on a busy one would have too few pairs for a fit.
    const Result<DeviceClockPair> first = timeline->clock_pair();
    if (!first && first.error().code != ErrorCode::pending) {
        return first.error();
    }
    return timeline;
}

OpenClTimeline::~OpenClTimeline() { drop(outstanding_.event); }

Status OpenClTimeline::open() {
    const Result<std::vector<DeviceId>> devices = devices_of(driver_);
    if (!devices) {
        return devices.error();
    }
    const auto place = std::find(devices->begin(), devices->end(), device_) - devices->begin();
    // A part of a device (clCreateSubDevices) is in no list: its handle names its clock.
    clock_name_ = "opencl:" + (static_cast<std::size_t>(place) < devices->size()
                                   ? std::to_string(place)
                                   : "part-" + std::to_string(reinterpret_cast<std::uintptr_t>(device_)));
    Result<std::string> name = device_text(driver_, device_, opencl::device_name);
    if (!name) {
        return name.error();
    }
    device_name_ = std::move(*name);
    std::size_t resolution = 0;
    const ClResult asked =
        driver_.get_device_info(device_, device_timer_resolution, sizeof resolution, &resolution, nullptr);
    if (asked != ClResult::success) {
        return error_of(asked, "clGetDeviceInfo", "this device's queues cannot be timed; see that clinfo lists it");
    }
    resolution_ns_ = std::max<std::uint64_t>(resolution, 1);
    return ask_for_device_timer();
}

// Drivers before OpenCL 2.1 may have no such entry at all, so that only the version says whether it may be called.
Status OpenClTimeline::ask_for_device_timer() {
    const Result<std::string> version = device_text(driver_, device_, device_version);
    if (!version) {
        return version.error();
    }
    if (driver_.get_device_and_host_timer == nullptr || *version < "OpenCL 2.1") {
        timer_reason_ = "clGetDeviceAndHostTimer came with OpenCL 2.1; clock pairs are read by markers";
        return {};
    }
    std::uint64_t device_ns = 0, host_ns = 0;
    const ClResult asked = driver_.get_device_and_host_timer(device_, &device_ns, &host_ns);
    has_device_timer_ = asked == ClResult::success;
    if (!has_device_timer_) {
        timer_reason_ = "clGetDeviceAndHostTimer answers " + std::to_string(static_cast<std::int32_t>(asked)) +
                        " here; clock pairs are read by markers";
    }
    return {};
}

// --- Stamps ---

Result<bool> OpenClTimeline::complete(Event event) const noexcept {
    std::int32_t status = 0;
    const ClResult asked = driver_.get_event_info(event, event_status, sizeof status, &status, nullptr);
    if (asked != ClResult::success) {
        return error_of(asked, "clGetEventInfo", check_calls);
    }
    if (status < status_complete) {
        return Error{ErrorCode::failed, "the device ended this command with error " + std::to_string(status) +
                                            ", so that it has no time; check the OpenCL calls before it"};
    }
    return status == status_complete;
}

Result<CommandTimes> OpenClTimeline::times(Event event) const noexcept {
    const Result<bool> done = complete(event);
    if (!done || !*done) {
        return done ? pending() : done.error();
    }
    CommandTimes times;
    const std::pair<std::uint32_t, std::uint64_t*> stamps[] = {{stamp_queued, &times.queued},
                                                               {stamp_submitted, &times.submitted},
                                                               {stamp_started, &times.started},
                                                               {stamp_ended, &times.ended}};
    for (const auto& [what, value] : stamps) {
        const ClResult asked = driver_.get_event_stamp(event, what, sizeof *value, value, nullptr);
        if (asked != ClResult::success) {
            return error_of(asked, "clGetEventProfilingInfo", check_calls);
        }
    }
    if (times.started == 0 || times.ended == 0) {
        return Error{ErrorCode::corrupt, "the driver left a stamp of this command at 0; it is not timed: report this "
                                         "driver"};
    }
    if (times.ended < times.started) {
        return Error{ErrorCode::corrupt, "the device's stamps say that this command ended before it began; report this "
                                         "driver"};
    }
    return times;
}

void OpenClTimeline::drop(Event event) const noexcept {
    if (event != nullptr) {
        static_cast<void>(driver_.release_event(event));
    }
}

Status OpenClTimeline::wait_short(Event event, std::int64_t limit_ns) const noexcept {
    const std::int64_t limit = now_ns() + limit_ns;
    for (std::int64_t polls = 0; polls < limit_ns / shortest_poll_ns; ++polls) {
        const Result<bool> done = complete(event);
        if (!done || *done) {
            return done ? Status() : Status(done.error());
        }
        if (now_ns() >= limit) {
            break;
        }
        std::this_thread::yield(); // a device that is a processor may need this core
    }
    return Error{ErrorCode::pending, "the device is too busy to read its clock; ask later"};
}

// --- Clock pairs ---

Result<CommandQueue> OpenClTimeline::own_queue() {
    if (own_ == nullptr) {
        Result<std::unique_ptr<OwnQueue>> made = OwnQueue::create(driver_, context_, device_);
        if (!made) {
            return made.error();
        }
        own_ = std::move(*made);
    }
    return own_->queue();
}

Result<DeviceClockPair> OpenClTimeline::clock_pair() noexcept {
    return has_device_timer_ ? pair_by_timer() : pair_by_marker();
}

// The host time that comes along is of a clock of the driver's choice: ours is read on both sides instead.
Result<DeviceClockPair> OpenClTimeline::pair_by_timer() noexcept {
    DeviceClockPair best;
    for (int attempt = 0; attempt < pair_tries; ++attempt) {
        std::uint64_t device_ns = 0, host_ns = 0;
        const std::int64_t before = now_ns();
        const ClResult asked = driver_.get_device_and_host_timer(device_, &device_ns, &host_ns);
        const std::int64_t width = now_ns() - before;
        if (asked != ClResult::success) {
            return error_of(asked, "clGetDeviceAndHostTimer", clock_unread);
        }
        if (attempt == 0 || static_cast<std::uint64_t>(width) < best.uncertainty_ticks) {
            best = {device_ns, before + width / 2, clock::realtime_ns() - width / 2,
                    static_cast<std::uint64_t>(width) + resolution_ns_};
        }
    }
    return best;
}

Result<OpenClTimeline::Probe> OpenClTimeline::enqueue_probe(CommandQueue queue, Event after) noexcept {
    Probe probe;
    probe.realtime_ns = clock::realtime_ns();
    probe.before_ns = now_ns();
    const ClResult made =
        driver_.enqueue_marker(queue, after != nullptr ? 1 : 0, after != nullptr ? &after : nullptr, &probe.event);
    probe.after_ns = now_ns();
    return made == ClResult::success ? Result<Probe>(probe)
                                     : Result<Probe>(error_of(made, "clEnqueueMarkerWithWaitList", clock_unread));
}

Status OpenClTimeline::flush(CommandQueue queue) const noexcept {
    const ClResult done = driver_.flush(queue);
    return done == ClResult::success ? Status() : Status(error_of(done, "clFlush", clock_unread));
}

// What cause and effect say: the marker was queued after `before` and had ended by `seen`, so that of the host's interval only
// what is longer than the device's is doubt. Of a device that was busy in between the call that queued it says more.
// Where a driver's queued stamp is of another clock, both contradict: then only the end is believed.
Result<DeviceClockPair> OpenClTimeline::read(const Probe& probe, std::int64_t seen_ns) const noexcept {
    const Result<CommandTimes> times = this->times(probe.event);
    if (!times) {
        return times.error();
    }
    const std::int64_t whole = seen_ns - probe.before_ns;
    const auto of_device = static_cast<std::int64_t>(times->ended - times->queued);
    const std::int64_t to_realtime = probe.realtime_ns - probe.before_ns;
    const auto pair = [&](std::uint64_t ticks, std::int64_t host_ns, std::int64_t width) {
        return DeviceClockPair{ticks, host_ns, host_ns + to_realtime,
                               static_cast<std::uint64_t>(width) + resolution_ns_};
    };
    const std::int64_t apart = whole / drift_divisor; // what two quartzes may differ by in that time
    const bool one_clock = of_device >= 0 && of_device <= whole + apart + static_cast<std::int64_t>(resolution_ns_);
    if (!one_clock) {
        return pair(times->ended, probe.before_ns + whole / 2, whole);
    }
    const std::int64_t doubt = std::max<std::int64_t>(whole - of_device, 0) + apart;
    const std::int64_t enqueued = probe.after_ns - probe.before_ns;
    if (enqueued < doubt) {
        return pair(times->queued, probe.before_ns + enqueued / 2, enqueued);
    }
    return pair(times->queued, probe.before_ns + doubt / 2, doubt);
}

Result<DeviceClockPair> OpenClTimeline::pair_by_marker() noexcept {
    const std::lock_guard lock(mutex_);
    const Result<CommandQueue> queue = own_queue();
    if (!queue) {
        return queue.error();
    }
    Result<DeviceClockPair> best = pending();
    for (int attempt = 0; attempt < (narrow(best) ? pair_tries : most_pair_tries); ++attempt) {
        if (outstanding_.event == nullptr) {
            const Result<Probe> probe = enqueue_probe(*queue);
            const Status flushed = probe ? flush(*queue) : Status(probe.error());
            outstanding_ = probe ? *probe : Probe{};
            if (!flushed) {
                return flushed.error();
            }
        }
        const Status seen = wait_short(outstanding_.event, !best && last_ ? again_limit_ns : pair_limit_ns);
        const std::int64_t seen_ns = now_ns();
        if (!seen && seen.error().code == ErrorCode::pending) {
            break;
        }
        const Result<DeviceClockPair> pair = seen ? read(outstanding_, seen_ns) : Result<DeviceClockPair>(seen.error());
        drop(std::exchange(outstanding_, {}).event);
        if (!pair) {
            return pair;
        }
        if (!best || pair->uncertainty_ticks <= best->uncertainty_ticks) {
            best = pair;
        }
    }
    if (best) { // a wide one is better than none: its width is told
        narrowest_ticks_ = std::min(narrowest_ticks_, best->uncertainty_ticks);
        last_ = *best;
    }
    return last_ ? Result<DeviceClockPair>(*last_) : best; // of a busy device the last one: still true, of then
}

bool OpenClTimeline::narrow(const Result<DeviceClockPair>& pair) const noexcept {
    return pair && (narrowest_ticks_ == no_ticks || pair->uncertainty_ticks <= much_wider * narrowest_ticks_);
}

// --- Floor ---

// Behind a gate, so that the device has them all before it runs the first: the steps between them are its own.
Result<std::vector<OpenClTimeline::Probe>> OpenClTimeline::enqueue_behind_gate(CommandQueue queue, std::size_t count) {
    ClResult made = ClResult::success;
    const Event gate = driver_.create_user_event(context_, &made);
    if (made != ClResult::success) {
        return error_of(made, "clCreateUserEvent", floor_unread);
    }
    std::vector<Probe> probes;
    Status status;
    while (status && probes.size() < count) {
        const Result<Probe> probe = enqueue_probe(queue, probes.empty() ? gate : nullptr);
        if (probe) {
            probes.push_back(*probe);
        } else {
            status = probe.error();
        }
    }
    status = status ? flush(queue) : status;
    made = driver_.set_user_event_status(gate, status_complete); // in any case: what waits for it would wait for ever
    drop(gate);
    status = made == ClResult::success ? status : Status(error_of(made, "clSetUserEventStatus", floor_unread));
    if (!status) {
        for (const Probe& probe : probes) {
            drop(probe.event);
        }
        return status.error();
    }
    return probes;
}

Result<double> OpenClTimeline::floor_ns() {
    const std::lock_guard lock(mutex_);
    const Result<CommandQueue> queue = own_queue();
    const Result<std::vector<Probe>> probes =
        queue ? enqueue_behind_gate(*queue, 66) : Result<std::vector<Probe>>(queue.error());
    if (!probes) {
        return probes.error();
    }
    Status status = wait_short(probes->back().event, floor_limit_ns);
    std::vector<double> steps;
    std::uint64_t last = 0;
    for (const Probe& probe : *probes) {
        const Result<CommandTimes> times = status ? this->times(probe.event) : Result<CommandTimes>(status.error());
        drop(probe.event);
        if (!times) {
            status = times.error();
            continue;
        }
        if (last != 0) {
            steps.push_back(static_cast<double>(times->ended) - static_cast<double>(last));
        }
        last = times->ended;
    }
    if (!status) {
        return status.error();
    }
    std::nth_element(steps.begin(), steps.begin() + 32, steps.end());
    return steps[32];
}

std::vector<Capability> capabilities_of(const OpenClTimeline& timeline, bool out_of_order) {
    return {
        {"scopes", !out_of_order,
         out_of_order
             ? "on an out-of-order queue a marker waits for everything before it; attach() the commands' events"
             : ""},
        {"attach", true, ""},
        {"per_dispatch", true, ""},
        {"device_timer", timeline.has_device_timer(), timeline.device_timer_reason()},
        {"graph_capture", false, "OpenCL queues are not captured into graphs"},
    };
}

} // namespace plumb::backends::opencl
