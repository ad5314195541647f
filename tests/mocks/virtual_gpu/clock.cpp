// SPDX-License-Identifier: Apache-2.0
// True time, on the host and on the device.
#include <time.h>

#include <cmath>

#include "virtual_gpu/state.hpp"
#include "virtual_world.hpp"

namespace plumb::vgpu {

namespace {

constexpr std::int64_t virtual_start_ns = 1'000'000'000;

std::atomic<std::int64_t> virtual_now{virtual_start_ns};
std::atomic<bool> is_virtual{false};
std::atomic<std::int64_t> start_ns{0}; // of this device

std::uint64_t cut(double ns, unsigned tick_ns) { return static_cast<std::uint64_t>(ns / tick_ns) * tick_ns; }

} // namespace

std::int64_t host_now() {
    if (is_virtual.load(std::memory_order_acquire)) {
        return virtual_now.load(std::memory_order_acquire);
    }
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

void advance_virtual(std::int64_t to_ns) {
    std::int64_t now = virtual_now.load();
    while (now < to_ns && !virtual_now.compare_exchange_weak(now, to_ns)) {
    }
}

void restart_clock(Time time) {
    virtual_now = virtual_start_ns;
    is_virtual = time == Time::virtual_time;
    start_ns = host_now();
}

HostClock& host_clock() {
    static mocks::VirtualHostClock<host_now> clock;
    return clock;
}

double device_ns(std::int64_t true_ns, int device) {
    const Config& config = gpu().config;
    const double shifted = static_cast<double>(true_ns + config.clock_offset_ns + device * config.clock_offset_step_ns);
    return shifted + shifted * config.clock_drift_ppm * 1e-6;
}

std::uint64_t event_stamp_ns(std::int64_t true_ns, int device) {
    return cut(device_ns(true_ns, device), gpu().config.event_tick_ns);
}

std::uint64_t globaltimer_ns(std::int64_t true_ns, int device) {
    const Config& config = gpu().config;
    const bool later = config.globaltimer_change_ns != 0 && true_ns >= start_ns + config.globaltimer_change_ns;
    return cut(device_ns(true_ns, device), later ? config.globaltimer_tick_later_ns : config.globaltimer_tick_ns);
}

} // namespace plumb::vgpu
