// SPDX-License-Identifier: Apache-2.0
// How far device times may be off on the host's clock, over a minute: the library's own timeline is asked where events
// lie, and the host saw each of them between two moments of its own. Beside it a kernel that answers the host through
// mapped memory: a bracket far narrower than a launch.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "backends/cuda/timeline.hpp"
#include "sections.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {
namespace {

/// The device's nanosecond clock at a moment that the host knows to half a bracket.
struct Answer {
    double device_ns = 0, host_ns = 0, bracket_ns = std::numeric_limits<double>::infinity();
};

/// The narrowest of many calls; an infinite bracket where the kernel does not answer.
Answer ping(Gpu& gpu, const ResultFile& results, bool say_all) {
    constexpr std::uint32_t calls = 200;
    DevicePointer box_device = 0, times_device = 0;
    const OwnedHostMemory box = allocate_mapped(gpu, 128, box_device);
    const OwnedHostMemory times = allocate_mapped(gpu, calls * sizeof(std::uint64_t), times_device);
    auto* ask = static_cast<volatile std::uint32_t*>(static_cast<void*>(box));
    volatile std::uint32_t* answered = ask + 16;
    *ask = 0;
    *answered = 0;
    gpu.launch(gpu.stream, gpu.kernel("check_ping"), 1, 1, box_device, times_device, calls);
    std::vector<double> before(calls), after(calls), brackets;
    std::uint32_t done = 0;
    for (std::uint32_t i = 0; i < calls; ++i) {
        const std::int64_t begin = host_ns();
        *ask = i + 1;
        std::int64_t now = begin;
        while (*answered != i + 1 && now - begin < 300'000'000) {
            now = host_ns();
        }
        if (*answered != i + 1) {
            break;
        }
        before[i] = static_cast<double>(begin);
        after[i] = static_cast<double>(now);
        done = i + 1;
    }
    *ask = calls; // lets a kernel that still listens end
    gpu.wait();
    Answer best;
    const auto* stamps = static_cast<const std::uint64_t*>(static_cast<void*>(times));
    for (std::uint32_t i = 0; i < done; ++i) {
        brackets.push_back(after[i] - before[i]);
        if (brackets.back() < best.bracket_ns) {
            best = {static_cast<double>(stamps[i]), (before[i] + after[i]) / 2, brackets.back()};
        }
    }
    if (say_all && !brackets.empty()) {
        results.figure("ping.bracket", spread_of(brackets), "ns");
    }
    return best;
}

void compare_pings(const ResultFile& results, const Answer& first, const Answer& last) {
    if (!std::isfinite(first.bracket_ns) || !std::isfinite(last.bracket_ns)) {
        results.absent("drift.globaltimer", "the kernel did not answer through mapped memory");
        return;
    }
    const double host = last.host_ns - first.host_ns;
    results.figure("drift.globaltimer", ((last.device_ns - first.device_ns) / host - 1) * 1e6, "ppm");
    results.figure("drift.globaltimer_bound", (first.bracket_ns + last.bracket_ns) / 2 / host * 1e6, "ppm");
}

struct Placing {
    std::vector<double> bounds, brackets, off_middle;
    std::size_t outside = 0, unplaced = 0;
    std::vector<double> device, host; // ticks and the middle of the bracket, from the first event on
    std::uint64_t first_ticks = 0;
    std::int64_t first_host = 0;
};

/// Our own line through the events whose bracket is no wider than most: its slope, and how far they lie off it.
void write_line(const ResultFile& results, const Placing& placing) {
    const double widest = spread_of(placing.brackets).median;
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    const auto each = [&](auto use) {
        for (std::size_t i = 0; i < placing.host.size(); ++i) {
            if (placing.brackets[i] <= widest) {
                use(placing.host[i], placing.device[i]);
            }
        }
    };
    each([&](double host, double device) { n += 1, x += host, y += device; });
    x /= n, y /= n;
    each([&](double host, double device) { xx += (host - x) * (host - x), xy += (host - x) * (device - y); });
    if (xx <= 0) {
        results.absent("drift.events", "all events have one place in time");
        return;
    }
    const double slope = xy / xx;
    std::vector<double> off;
    each([&](double host, double device) { off.push_back(std::abs(device - y - slope * (host - x))); });
    results.figure("drift.events", (slope - 1) * 1e6, "ppm");
    results.figure("fit.residual", spread_of(off), "ns");
}

void place_one(Gpu& gpu, Timeline& timeline, Placing& placing) {
    plumb::Result<Event> event = timeline.acquire();
    expect(event.ok(), event.ok() ? "" : event.error().message);
    const std::int64_t before = host_ns();
    gpu.record(*event, gpu.stream);
    while (gpu.d.event_query(*event) == CuResult::not_ready) {
    }
    const std::int64_t after = host_ns();
    const plumb::Result<std::uint64_t> ticks = timeline.place(*event);
    timeline.release(*event);
    const plumb::Result<HostPlace> placed =
        ticks.ok() ? timeline.to_host(*ticks) : plumb::Result<HostPlace>(ticks.error());
    if (!placed.ok()) {
        ++placing.unplaced;
        return;
    }
    const auto middle = static_cast<double>(before + after) / 2;
    const auto width = static_cast<double>(after - before);
    const double off = static_cast<double>(placed->monotonic_ns) - middle;
    placing.bounds.push_back(placed->bound_ns);
    placing.brackets.push_back(width);
    placing.off_middle.push_back(off);
    placing.outside += std::abs(off) > width / 2 + placed->bound_ns ? 1 : 0;
    if (placing.host.empty()) {
        placing.first_ticks = *ticks;
        placing.first_host = before;
    }
    placing.device.push_back(static_cast<double>(static_cast<std::int64_t>(*ticks - placing.first_ticks)));
    placing.host.push_back(static_cast<double>(before - placing.first_host) + width / 2);
}

void write_placing(const ResultFile& results, const Placing& placing) {
    results.figure("placed", static_cast<double>(placing.bounds.size()), "1");
    results.figure("not_placed", static_cast<double>(placing.unplaced), "1");
    if (placing.bounds.empty()) {
        results.absent("place.bound", "no event could be placed on the host's clock");
        return;
    }
    results.figure("place.bound", spread_of(placing.bounds), "ns");
    results.figure("place.host_bracket", spread_of(placing.brackets), "ns");
    results.figure("place.off_middle", spread_of(placing.off_middle), "ns");
    results.figure("place.outside", static_cast<double>(placing.outside), "1");
    write_line(results, placing);
}

} // namespace

void run_clock(const ResultFile& results, const Options& options) {
    Gpu gpu;
    const plumb::Result<std::shared_ptr<Timeline>> made = timeline_of(gpu.d, gpu.stream, nullptr);
    expect(made.ok(), made.ok() ? "" : made.error().message);
    Timeline& timeline = **made;
    const Answer first = ping(gpu, results, true);
    const std::int64_t end = host_ns() + (options.tiny ? 3'000'000'000LL : 60'000'000'000LL);
    Placing placing;
    for (int turn = 0; host_ns() < end; ++turn) {
        timeline.tend(host_ns(), true);
        if (turn >= 20) { // the young clock has read a few pairs by then
            place_one(gpu, timeline, placing);
        }
        usleep(20'000);
    }
    write_placing(results, placing);
    results.figure("tick.events_as_found", timeline.tick_ns(), "ns");
    compare_pings(results, first, ping(gpu, results, false));
}

} // namespace gpu_check
