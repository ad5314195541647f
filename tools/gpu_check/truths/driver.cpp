// SPDX-License-Identifier: Apache-2.0
// Truths about stamps, clocks and the driver itself.

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cuda/stamp_module.hpp"
#include "truths/ticks.hpp"
#include "truths/truth.hpp"

namespace gpu_check {
namespace {

struct StampRing {
    const StampModule* module;
    OwnedMemory memory; // counter, then the slots
    unsigned slots;
};

StampRing make_ring(Gpu& gpu, unsigned slots) {
    const auto module = stamp_module(gpu.d, gpu.context);
    expect(module.ok(), module.ok() ? "" : module.error().message);
    StampRing ring{*module, allocate(gpu, 8 * (std::size_t{slots} + 1)), slots};
    gpu.set32(ring.memory, 0, 2 * (std::size_t{slots} + 1));
    return ring;
}

void stamp(Gpu& gpu, const StampRing& ring, unsigned slot) {
    StampParameters values{ring.memory + 8, ring.memory, slot, ring.slots, 0, 0};
    void* pointers[6];
    values.fill(pointers);
    gpu.must(gpu.d.launch_kernel(ring.module->stamp, 1, 1, 1, 1, 1, 1, 0, gpu.stream, pointers, nullptr),
             "cuLaunchKernel of the stamp");
}

/// Device time of an event on the idle stream, and the host's bracket around it: the narrowest of many.
struct Pair {
    OwnedEvent event;
    std::int64_t middle = 0, width = 0;
};
Pair narrow_pair(Gpu& gpu) {
    Pair best{OwnedEvent(gpu), 0, std::numeric_limits<std::int64_t>::max()};
    for (int i = 0; i < 50; ++i) {
        OwnedEvent event = make_event(gpu);
        const std::int64_t before = gpu.time.now_ns();
        gpu.record(event, gpu.stream);
        while (gpu.d.event_query(event) == CuResult::not_ready) {
        }
        const std::int64_t after = gpu.time.now_ns();
        if (after - before < best.width) {
            best.event = std::move(event);
            best.middle = (before + after) / 2;
            best.width = after - before;
        }
    }
    return best;
}

} // namespace

void truth_stamp_kernel_reads_globaltimer(Gpu& gpu) {
    constexpr unsigned slots = 64;
    const StampRing ring = make_ring(gpu, slots);
    for (unsigned slot = 0; slot < slots; ++slot) {
        stamp(gpu, ring, slot);
    }
    gpu.wait();
    const auto stamps = gpu.read<std::uint64_t>(ring.memory + 8, slots);
    std::vector<double> steps;
    for (unsigned i = 1; i < slots; ++i) {
        expect(stamps[i] >= stamps[i - 1] && stamps[i - 1] != 0, "stamps of one stream do not follow each other");
        steps.push_back(static_cast<double>(stamps[i] - stamps[i - 1]));
    }
    say("tick " + std::to_string(tick_of(steps)) + " ns");
}

void truth_globaltimer_and_events_share_a_clock(Gpu& gpu) {
    double nearest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 10; ++i) {
        const StampRing ring = make_ring(gpu, 2);
        const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
        gpu.launch_spin(gpu.stream, 100); // so that nothing below waits for its launch
        gpu.record(begin, gpu.stream);
        stamp(gpu, ring, 0);
        gpu.launch_spin(gpu.stream, 5000);
        gpu.record(end, gpu.stream);
        stamp(gpu, ring, 1);
        gpu.wait();
        const auto stamps = gpu.read<std::uint64_t>(ring.memory + 8, 2);
        const double apart = static_cast<double>(stamps[1] - stamps[0]);
        nearest = std::min(nearest, std::abs(apart - gpu.elapsed_ns(begin, end)));
    }
    say("over 5 ms they differ by " + std::to_string(nearest) + " ns at best");
    expect(nearest < 3000, "%globaltimer and events disagree");
}

void truth_device_clock_drifts(Gpu& gpu) {
    const Pair first = narrow_pair(gpu);
    gpu.time.sleep_ns(2'000'000'000);
    const Pair second = narrow_pair(gpu);
    const double host = static_cast<double>(second.middle - first.middle);
    const double ppm = (gpu.elapsed_ns(first.event, second.event) / host - 1) * 1e6;
    const double bound = static_cast<double>(first.width + second.width) / 2 / host * 1e6;
    say(std::to_string(ppm) + " ppm, give or take " + std::to_string(bound));
    expect(std::abs(ppm) < 500 + bound, "the device's clock is off by more than parts per million");
}

void truth_entry_points_are_version_exact(Gpu& gpu) {
    void* newer = find_entry("cuStreamGetCaptureInfo", 12030);
    void* older = find_entry("cuStreamGetCaptureInfo", 11030);
    expect(older != nullptr, "cuStreamGetCaptureInfo of 11.3 is not there");
    expect(gpu.d.version < 12030 || (newer != nullptr && newer != older),
           "cuStreamGetCaptureInfo of 11.3 and of 12.3 are one function");
    expect(gpu.d.version < 12020 || find_entry("cuStreamGetCaptureInfo", 12020) == older,
           "between two versions the older one is not given");
    expect(find_entry("cuNoSuchCall", 11030) == nullptr, "a call that is none was given");
    expect(find_entry("cuInit", 99'000) == nullptr, "a call of a version yet to come was given");
    expect(find_entry("cuGraphInstantiateWithFlags", 11030) == nullptr,
           "a call of 11.4 was given to one who asks for 11.3");
}

void truth_calls_need_init(Gpu& gpu) {
    int count = 0;
    gpu.expect_result(gpu.d.device_get_count(&count), CuResult::not_initialized, "cuDeviceGetCount before cuInit");
    gpu.must(gpu.d.driver_get_version(&count), "cuDriverGetVersion before cuInit");
    gpu.must(gpu.d.init(0), "cuInit");
    gpu.must(gpu.d.device_get_count(&count), "cuDeviceGetCount after cuInit");
    OwnedEvent event(gpu);
    gpu.expect_result(gpu.d.event_create(event.out(), 0), CuResult::invalid_context, "cuEventCreate without a context");
}

void truth_sticky_error_stays(Gpu& gpu) {
    const OwnedGraph graph = make_graph(gpu);
    add_empty_kernel(gpu, graph, nullptr);
    OwnedExec exec = instantiate(gpu, graph);
    const Function empty = gpu.kernel("check_empty");
    StampRing nowhere = make_ring(gpu, 1);
    const OwnedMemory kept = std::move(nowhere.memory);
    nowhere.memory = OwnedMemory(gpu, 0x10);
    stamp(gpu, nowhere, 0); // reads where nothing is
    static_cast<void>(nowhere.memory.release());
    gpu.expect_result(gpu.d.stream_synchronize(gpu.stream), CuResult::illegal_address,
                      "waiting for a kernel that reads where nothing is");
    DevicePointer memory = 0;
    gpu.expect_result(gpu.d.mem_alloc(&memory, 1024), CuResult::illegal_address, "the next cuMemAlloc");
    gpu.expect_result(gpu.d.stream_synchronize(gpu.stream), CuResult::illegal_address, "the next cuStreamSynchronize");
    const CuResult launched = gpu.d.launch_kernel(empty, 1, 1, 1, 1, 1, 1, 0, gpu.stream, nullptr, nullptr);
    gpu.expect_result(launched, CuResult::illegal_address, "the next cuLaunchKernel");
    gpu.expect_result(gpu.d.graph_exec_destroy(exec.release()), CuResult::illegal_address,
                      "the next cuGraphExecDestroy");
    expect(gpu.name_of(launched) == "CUDA_ERROR_ILLEGAL_ADDRESS", "the error's name is " + gpu.name_of(launched));
}

void truth_kernel_names_and_parameters_can_be_asked(Gpu& gpu) {
    if (gpu.d.func_get_name == nullptr || gpu.d.func_get_param_info == nullptr) {
        throw NotApplicable{"this driver is older than 12.4"};
    }
    const OwnedGraph graph = make_graph(gpu);
    DevicePointer to = 0, from = 0;
    std::uint64_t count = 0;
    void* parameters[] = {&to, &from, &count};
    const GraphNode node = add_kernel(gpu, graph, nullptr, gpu.kernel("check_copy"), parameters);
    KernelNodeParams asked{};
    gpu.must(gpu.d.kernel_params(node, &asked), "cuGraphKernelNodeGetParams");
    const char* name = nullptr;
    gpu.must(asked.func != nullptr ? gpu.d.func_get_name(&name, asked.func) : gpu.d.kernel_get_name(&name, asked.kern),
             "the name of a node's function");
    expect(std::string(name) == "check_copy", std::string("the kernel's name is ") + name);
    for (std::size_t i = 0; i < 4; ++i) {
        std::size_t offset = 0, bytes = 0;
        const CuResult result = asked.func != nullptr ? gpu.d.func_get_param_info(asked.func, i, &offset, &bytes)
                                                      : gpu.d.kernel_get_param_info(asked.kern, i, &offset, &bytes);
        expect(i < 3 ? result == CuResult::success && bytes == 8 && offset == 8 * i : result != CuResult::success,
               "parameter " + std::to_string(i) + " is not as the kernel declares it");
    }
    say(asked.func != nullptr ? "the node gives a function" : "the node gives a kernel");
}

void truth_node_memory_is_invisible(Gpu& gpu) {
    const OwnedGraph graph = make_graph(gpu);
    add_empty_kernel(gpu, graph, nullptr);
    std::size_t before = 0, after = 0, total = 0;
    gpu.must(gpu.d.mem_get_info(&before, &total), "cuMemGetInfo");
    const OwnedExec exec = instantiate(gpu, graph);
    launch_graph(gpu, exec, gpu.stream);
    gpu.wait();
    gpu.must(gpu.d.mem_get_info(&after, &total), "cuMemGetInfo");
    const std::size_t moved = before > after ? before - after : after - before;
    say("one node moved it by " + std::to_string(moved) + " bytes");
    expect(moved % 4096 == 0, "cuMemGetInfo moved by less than a page");
}

} // namespace gpu_check
