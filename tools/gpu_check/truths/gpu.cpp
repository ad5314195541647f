// SPDX-License-Identifier: Apache-2.0
#include "truths/gpu.hpp"

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "truths/kernels.hpp"

namespace gpu_check {
namespace {

const Driver& loaded_driver() {
    const plumb::Result<Driver>& loaded = driver();
    if (!loaded) {
        fail(loaded.error().message);
    }
    return *loaded;
}

/// The kernels as the pack brings them for a driver without its PTX compiler; empty where there is no such file.
std::string cubins() {
    std::error_code none;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
    std::ifstream file(program.parent_path() / "kernels.fatbin", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

} // namespace

void fail(std::string sentence) { throw Failure{std::move(sentence)}; }

void expect(bool holds, const std::string& sentence) {
    if (!holds) {
        fail(sentence);
    }
}

std::int64_t host_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void sleep_host_ns(std::int64_t ns) {
    const timespec span{ns / 1'000'000'000, ns % 1'000'000'000};
    nanosleep(&span, nullptr);
}

Gpu::Gpu(NotReady, HostTime host_time) : d(loaded_driver()), time(host_time) {}

Gpu::Gpu(HostTime host_time) : Gpu(not_ready, host_time) {
    must(d.init(0), "cuInit");
    int count = 0;
    must(d.device_get_count(&count), "cuDeviceGetCount");
    expect(count > 0, "the NVIDIA driver is there but shows no device; see that one is visible to this process");
    must(d.device_get(&device, 0), "cuDeviceGet");
    char text[256] = {};
    must(d.device_get_name(text, sizeof text - 1, device), "cuDeviceGetName");
    name = text;
    multiprocessors = attribute(attribute_multiprocessors);
    must(d.primary_ctx_retain(&context, device), "cuDevicePrimaryCtxRetain");
    must(d.ctx_push_current(context), "cuCtxPushCurrent");
    must(d.stream_create(&stream, stream_non_blocking), "cuStreamCreate");
    CuResult loaded = d.module_load_data(&module_, kernels_ptx().c_str());
    if (const std::string assembled = cubins(); loaded != CuResult::success && !assembled.empty()) {
        loaded = d.module_load_data(&module_, assembled.c_str());
    }
    must(loaded, "cuModuleLoadData");
}

Gpu::~Gpu() {
    if (context == nullptr) {
        return;
    }
    static_cast<void>(d.stream_destroy(stream));
    static_cast<void>(d.module_unload(module_));
    Context popped = nullptr;
    static_cast<void>(d.ctx_pop_current(&popped));
    static_cast<void>(d.primary_ctx_release(device));
}

std::string Gpu::name_of(CuResult result) const {
    const char* text = nullptr;
    if (result == CuResult::success) {
        return "CUDA_SUCCESS";
    }
    if (d.get_error_name(result, &text) != CuResult::success || text == nullptr) {
        return "error " + std::to_string(static_cast<int>(result));
    }
    return text;
}

void Gpu::must(CuResult result, const char* call) const {
    if (result != CuResult::success) {
        fail(std::string(call) + " answered " + name_of(result));
    }
}

void Gpu::expect_result(CuResult result, CuResult wanted, const char* what) const {
    if (result != wanted) {
        fail(std::string(what) + ": " + name_of(result) + " where " + name_of(wanted) + " was expected");
    }
}

int Gpu::attribute(int which) const {
    int value = 0;
    must(d.device_get_attribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
}

Function Gpu::kernel(const std::string& kernel_name) {
    for (const auto& [known, function] : known_) {
        if (known == kernel_name) {
            return function;
        }
    }
    Function function = nullptr;
    must(d.module_get_function(&function, module_, kernel_name.c_str()), "cuModuleGetFunction");
    known_.emplace_back(kernel_name, function);
    return function;
}

Function Gpu::spin(unsigned microseconds) { return kernel(spin_name(microseconds)); }

void Gpu::launch_empty(Stream on) {
    must(d.launch_kernel(kernel("check_empty"), 1, 1, 1, 1, 1, 1, 0, on, nullptr, nullptr), "cuLaunchKernel");
}

void Gpu::launch_spin(Stream on, unsigned microseconds, DevicePointer out) {
    launch(on, spin(microseconds), 1, 1, out);
}

double Gpu::elapsed_ns(Event begin, Event end) const {
    float milliseconds = 0;
    must(d.elapsed(&milliseconds, begin, end), "cuEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e6;
}

OwnedStream make_stream(Gpu& gpu, unsigned flags) {
    OwnedStream made(gpu);
    gpu.must(gpu.d.stream_create(made.out(), flags), "cuStreamCreate");
    return made;
}

OwnedEvent make_event(Gpu& gpu, unsigned flags) {
    OwnedEvent made(gpu);
    gpu.must(gpu.d.event_create(made.out(), flags), "cuEventCreate");
    return made;
}

OwnedGraph make_graph(Gpu& gpu) {
    OwnedGraph made(gpu);
    gpu.must(gpu.d.graph_create(made.out(), 0), "cuGraphCreate");
    return made;
}

OwnedExec instantiate(Gpu& gpu, Graph graph) {
    OwnedExec made(gpu);
    gpu.must(gpu.d.graph_instantiate(made.out(), graph, 0), "cuGraphInstantiateWithFlags");
    return made;
}

OwnedMemory allocate(Gpu& gpu, std::size_t bytes) {
    OwnedMemory made(gpu);
    gpu.must(gpu.d.mem_alloc(made.out(), bytes), "cuMemAlloc");
    return made;
}

OwnedHostMemory allocate_mapped(Gpu& gpu, std::size_t bytes, DevicePointer& device_address) {
    OwnedHostMemory made(gpu);
    gpu.must(gpu.d.mem_host_alloc(made.out(), bytes, memory_host_portable | memory_host_device_map), "cuMemHostAlloc");
    gpu.must(gpu.d.mem_host_get_device_pointer(&device_address, made, 0), "cuMemHostGetDevicePointer");
    return made;
}

GraphNode add_kernel(Gpu& gpu, Graph graph, GraphNode after, Function function, void** parameters) {
    KernelNodeParams node{};
    node.func = function;
    node.grid_x = node.grid_y = node.grid_z = 1;
    node.block_x = node.block_y = node.block_z = 1;
    node.kernel_params = parameters;
    GraphNode made = nullptr;
    gpu.must(gpu.d.add_kernel(&made, graph, &after, after != nullptr ? 1 : 0, &node), "cuGraphAddKernelNode");
    return made;
}

GraphNode add_empty_kernel(Gpu& gpu, Graph graph, GraphNode after) {
    return add_kernel(gpu, graph, after, gpu.kernel("check_empty"));
}

GraphNode add_spin(Gpu& gpu, Graph graph, GraphNode after, unsigned microseconds, DevicePointer out) {
    void* parameters[] = {&out};
    return add_kernel(gpu, graph, after, gpu.spin(microseconds), parameters);
}

GraphNode add_event(Gpu& gpu, Graph graph, GraphNode after, Event event) {
    GraphNode made = nullptr;
    gpu.must(gpu.d.graph_add_event_record_node(&made, graph, &after, after != nullptr ? 1 : 0, event),
             "cuGraphAddEventRecordNode");
    return made;
}

std::vector<GraphNode> nodes_of(Gpu& gpu, Graph graph) {
    std::size_t count = 0;
    gpu.must(gpu.d.graph_get_nodes(graph, nullptr, &count), "cuGraphGetNodes");
    std::vector<GraphNode> nodes(count);
    if (count != 0) {
        gpu.must(gpu.d.graph_get_nodes(graph, nodes.data(), &count), "cuGraphGetNodes");
    }
    return nodes;
}

} // namespace gpu_check
