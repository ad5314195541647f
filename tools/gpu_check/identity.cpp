// SPDX-License-Identifier: Apache-2.0
// Which device and driver this is, and what its two clocks count in.
#include <cstdio>
#include <unistd.h>

#include "sections.hpp"
#include "truths/gpu.hpp"
#include "truths/ticks.hpp"

namespace gpu_check {
namespace {

void write_ticks(Gpu& gpu, const ResultFile& results) {
    std::vector<double> events;
    for (int i = 0; i < 300; ++i) {
        const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
        gpu.record(begin, gpu.stream);
        gpu.launch_spin(gpu.stream, i % 3 == 0 ? 20 : 5);
        gpu.record(end, gpu.stream);
        gpu.wait();
        events.push_back(gpu.elapsed_ns(begin, end));
    }
    const int event_tick = tick_of(events);
    if (event_tick > 0) {
        results.figure("tick.event", event_tick, "ns");
    } else {
        results.absent("tick.event", "elapsed times are multiples of no whole number of nanoseconds");
    }
    constexpr std::uint32_t count = 1000;
    const OwnedMemory memory = allocate(gpu, count * sizeof(std::uint64_t));
    gpu.launch(gpu.stream, gpu.kernel("check_timer_steps"), 1, 1, static_cast<DevicePointer>(memory), count);
    gpu.wait();
    const auto stamps = gpu.read<std::uint64_t>(memory, count);
    std::vector<double> steps;
    for (std::size_t i = 1; i < stamps.size(); ++i) {
        steps.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
    }
    results.figure("tick.globaltimer", tick_of(steps), "ns");
    results.figure("globaltimer.step", spread_of(steps), "ns");
}

/// SM clock as a kernel sees it: its cycles over its nanoseconds, idle at first and after work.
void write_clock_rate(Gpu& gpu, const ResultFile& results) {
    const OwnedMemory memory = allocate(gpu, 3 * sizeof(std::uint64_t));
    const auto rate = [&] {
        gpu.launch_spin(gpu.stream, 1000, memory);
        gpu.wait();
        const auto spun = gpu.read<std::uint64_t>(memory, 3);
        return spun[1] > spun[0] ? static_cast<double>(spun[2]) * 1e3 / static_cast<double>(spun[1] - spun[0]) : 0.0;
    };
    usleep(200'000);
    results.figure("sm_clock", rate(), "MHz", {{"after", "0.2 s idle"}});
    for (int i = 0; i < 40; ++i) {
        gpu.launch_spin(gpu.stream, 5000);
    }
    results.figure("sm_clock", rate(), "MHz", {{"after", "0.2 s of one-thread work"}});
}

} // namespace

void run_identity(const ResultFile& results, const Options&) {
    Gpu gpu;
    results.text("device", gpu.name);
    results.text("driver_cuda", std::to_string(gpu.d.version / 1000) + "." + std::to_string(gpu.d.version % 1000 / 10));
    std::FILE* file = std::fopen("/sys/module/nvidia/version", "r");
    char version[64] = {};
    if (file != nullptr && std::fscanf(file, "%63s", version) == 1) {
        results.text("driver_version", version);
    }
    if (file != nullptr) {
        std::fclose(file);
    }
    results.text("compute_capability", std::to_string(gpu.attribute(attribute_compute_major)) + "." +
                                           std::to_string(gpu.attribute(attribute_compute_minor)));
    results.figure("multiprocessors", gpu.multiprocessors, "1");
    results.figure("l2_cache", gpu.attribute(attribute_l2_cache_bytes), "bytes");
    std::size_t free_bytes = 0, total_bytes = 0;
    gpu.must(gpu.d.mem_get_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    results.figure("memory", static_cast<double>(total_bytes), "bytes");
    results.figure("memory_free", static_cast<double>(free_bytes), "bytes");
    write_ticks(gpu, results);
    write_clock_rate(gpu, results);
}

} // namespace gpu_check
