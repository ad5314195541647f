// SPDX-License-Identifier: Apache-2.0
// HIP's calls over the virtual GPU's: current devices instead of contexts, HIP's answers where they differ.
#include "virtual_hip/hip.hpp"

#include <atomic>
#include <limits>
#include <mutex>
#include <set>
#include <vector>

#include "virtual_gpu/calls.hpp"
#include "virtual_hip/control.hpp"

namespace plumb::vhip {

namespace {

using vgpu::CuResult;
using vgpu::Stream;

constexpr int first_version = 50'220'730;

struct State {
    std::mutex mutex;
    std::vector<vgpu::Context> contexts; // of each device
    std::set<Stream> streams;            // alive
    std::set<Stream> capturing;
    std::set<Stream> broken;     // whose captures were
    std::set<vgpu::Event> nodes; // events that some graph records
    std::atomic<EventNodes> event_nodes{EventNodes::work};
    std::atomic<std::uint64_t> generation{1};
    std::atomic<int> version{first_version};
    std::atomic<bool> no_devices{false};
    std::atomic<double> skew_ns{0}, skew_below_ns{0};
    std::atomic<std::uint64_t> questions{0}, crashes{0};
};
State& state() {
    static State& only = *new State;
    return only;
}

constexpr int fixed_version = 70'300'000;
constexpr int crashing_version = 70'000'000;
constexpr int common_types_version = 50'300'000; // before, types of nodes were counted from 1

struct Thread {
    std::uint64_t generation = 0;
    int device = 0;
};
thread_local Thread thread;

void start(State& s) {
    static_cast<void>(vgpu::vgpu_init(0));
    for (int i = 0; i < vgpu::config().devices; ++i) {
        vgpu::Context context = nullptr;
        static_cast<void>(vgpu::vgpu_primary_ctx_retain(&context, i));
        s.contexts.push_back(context);
    }
}

/// HIP starts at its first call, and has device 0 current on every thread.
CuResult enter() {
    State& s = state();
    if (thread.generation == s.generation) {
        return CuResult::success;
    }
    const std::lock_guard lock(s.mutex);
    if (s.contexts.empty()) {
        start(s);
    }
    thread = {s.generation, 0};
    return vgpu::vgpu_ctx_set_current(s.contexts[0]);
}

CuResult switch_to(int device) {
    State& s = state();
    if (const CuResult entered = enter(); entered != CuResult::success) {
        return entered;
    }
    const std::lock_guard lock(s.mutex);
    if (device < 0 || static_cast<std::size_t>(device) >= s.contexts.size()) {
        return CuResult::invalid_device;
    }
    if (device == thread.device) {
        return CuResult::success;
    }
    thread.device = device;
    return vgpu::vgpu_ctx_set_current(s.contexts[static_cast<std::size_t>(device)]);
}

/// A stream that is gone: an answer, or a crash.
CuResult alive(Stream stream) {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    if (reinterpret_cast<std::uintptr_t>(stream) <= 2 || s.streams.contains(stream)) {
        return CuResult::success;
    }
    if (s.version >= crashing_version) {
        ++s.crashes;
    }
    return CuResult::context_is_destroyed;
}

void question() {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    if (!s.capturing.empty()) {
        ++s.questions;
        if (s.version < fixed_version) {
            s.broken = s.capturing;
        }
    }
}

CuResult as_event_nodes_do(float* ms, vgpu::Event begin, vgpu::Event end) {
    State& s = state();
    const std::lock_guard lock(s.mutex);
    const bool first = s.nodes.contains(begin);
    const bool second = s.nodes.contains(end);
    switch (s.event_nodes) {
    case EventNodes::work:
        break;
    case EventNodes::unreadable:
        return first || second ? CuResult::invalid_handle : CuResult::success;
    case EventNodes::never:
        return first || second ? CuResult::not_ready : CuResult::success;
    case EventNodes::no_number:
        *ms = first || second ? std::numeric_limits<float>::quiet_NaN() : *ms;
        break;
    case EventNodes::stand_still:
        *ms = first && second ? 0 : *ms;
        break;
    case EventNodes::run_back:
        *ms = first && second ? -*ms : *ms;
        break;
    case EventNodes::stale:
        *ms = second && !first ? -1 : *ms;
        break;
    }
    return CuResult::success;
}

} // namespace

void reset(const vgpu::Config& config) {
    State& s = state();
    vgpu::reset(config);
    const std::lock_guard lock(s.mutex);
    s.contexts.clear();
    start(s);
    s.streams.clear();
    s.broken.clear();
    s.capturing.clear();
    s.version = first_version;
    s.no_devices = false;
    s.skew_ns = s.skew_below_ns = 0;
    s.nodes.clear();
    s.event_nodes = EventNodes::work;
    s.questions = s.crashes = 0;
    ++s.generation;
}

void version(int version) { state().version = version; }
void no_devices() { state().no_devices = true; }
void skew(double ns, double below_ns) {
    state().skew_ns = ns;
    state().skew_below_ns = below_ns;
}
void event_nodes(EventNodes behaviour) { state().event_nodes = behaviour; }
std::uint64_t questions_in_captures() { return state().questions; }
std::uint64_t crashes() { return state().crashes; }

CuResult device_of_stream(Stream stream, int* device) {
    CuResult done = alive(stream);
    if (done == CuResult::success) {
        done = enter();
    }
    vgpu::Context context = nullptr;
    if (done == CuResult::success) {
        done = vgpu::vgpu_stream_get_ctx(stream, &context);
    }
    const std::lock_guard lock(state().mutex);
    for (std::size_t i = 0; i < state().contexts.size(); ++i) {
        if (state().contexts[i] == context) {
            *device = static_cast<int>(i);
        }
    }
    return done;
}

CuResult id_of_stream(Stream stream, unsigned long long* id) {
    const CuResult entered = enter();
    return entered == CuResult::success ? vgpu::vgpu_stream_get_id(stream, id) : entered;
}

} // namespace plumb::vhip

using namespace plumb::vhip;
using plumb::vgpu::CaptureMode;
using plumb::vgpu::CaptureStatus;
using plumb::vgpu::CuResult;
using plumb::vgpu::Event;
using plumb::vgpu::Function;
using plumb::vgpu::Graph;
using plumb::vgpu::GraphExec;
using plumb::vgpu::GraphNode;
using plumb::vgpu::Module;
using plumb::vgpu::Stream;

// A call that HIP and CUDA have alike.
#define PLUMB_VHIP_SAME(name, member, parameters, ...)                                           \
    CuResult name parameters {                                                                   \
        const CuResult entered = enter();                                                        \
        return entered == CuResult::success ? plumb::vgpu::vgpu_##member(__VA_ARGS__) : entered; \
    }
// The same, for one stream.
#define PLUMB_VHIP_STREAM(name, member, parameters, ...)                                         \
    CuResult name parameters {                                                                   \
        const CuResult there = alive(stream);                                                    \
        const CuResult entered = there == CuResult::success ? enter() : there;                   \
        return entered == CuResult::success ? plumb::vgpu::vgpu_##member(__VA_ARGS__) : entered; \
    }

extern "C" {

CuResult hipInit(unsigned flags) {
    return state().no_devices ? CuResult::invalid_device : plumb::vgpu::vgpu_init(flags);
}
CuResult hipRuntimeGetVersion(int* version) {
    *version = state().version;
    return state().no_devices ? CuResult::invalid_device : CuResult::success;
}
const char* hipGetErrorName(CuResult error) {
    return error == CuResult::invalid_device ? "hipErrorInvalidDevice"
           : error == CuResult::no_device    ? "hipErrorNoDevice"
           : error == CuResult::not_ready    ? "hipErrorNotReady"
                                             : "hipErrorUnknown";
}
CuResult hipGetDeviceCount(int* count) {
    return state().no_devices ? CuResult::no_device : plumb::vgpu::vgpu_device_get_count(count);
}
CuResult hipGetDevice(int* device) {
    const CuResult entered = enter();
    *device = thread.device;
    return entered;
}
CuResult hipSetDevice(int device) { return switch_to(device); }

PLUMB_VHIP_SAME(hipDeviceGet, device_get, (int* device, int ordinal), device, ordinal)
PLUMB_VHIP_SAME(hipDeviceGetName, device_get_name, (char* name, int length, int device), name, length, device)
PLUMB_VHIP_SAME(hipDeviceGetUuid, device_get_uuid, (plumb::vgpu::Uuid * uuid, int device), uuid, device)
PLUMB_VHIP_SAME(hipModuleLoadData, module_load_data, (Module * module, const void* image), module, image)
PLUMB_VHIP_SAME(hipModuleGetFunction, module_get_function, (Function * function, Module module, const char* name),
                function, module, name)
PLUMB_VHIP_STREAM(hipModuleLaunchKernel, launch_kernel,
                  (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared_bytes, Stream stream, void** params,
                   void** extra),
                  function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params, extra)
PLUMB_VHIP_STREAM(hipStreamIsCapturing, stream_is_capturing, (Stream stream, CaptureStatus* status), stream, status)
PLUMB_VHIP_SAME(hipThreadExchangeStreamCaptureMode, thread_exchange_capture_mode, (CaptureMode * mode), mode)
PLUMB_VHIP_SAME(hipGraphDestroy, graph_destroy, (Graph graph), graph)
#ifndef PLUMB_VHIP_WITHOUT_CLONES
PLUMB_VHIP_SAME(hipGraphClone, graph_clone, (Graph * clone, Graph original), clone, original)
#endif
PLUMB_VHIP_SAME(hipGraphCreate, graph_create, (Graph * graph, unsigned flags), graph, flags)
PLUMB_VHIP_SAME(hipGraphNodeFindInClone, graph_node_find_in_clone, (GraphNode * node, GraphNode original, Graph clone),
                node, original, clone)
PLUMB_VHIP_SAME(hipGraphGetNodes, graph_get_nodes, (Graph graph, GraphNode* nodes, std::size_t* count), graph, nodes,
                count)
PLUMB_VHIP_SAME(hipGraphGetEdges, graph_get_edges_v10000,
                (Graph graph, GraphNode* from, GraphNode* to, std::size_t* count), graph, from, to, count)
PLUMB_VHIP_SAME(hipGraphChildGraphNodeGetGraph, graph_child_node_get_graph, (GraphNode node, Graph* graph), node, graph)
PLUMB_VHIP_SAME(hipGraphAddEmptyNode, graph_add_empty_node,
                (GraphNode * node, Graph graph, const GraphNode* after, std::size_t count), node, graph, after, count)
PLUMB_VHIP_SAME(hipGraphAddDependencies, graph_add_dependencies_v10000,
                (Graph graph, const GraphNode* from, const GraphNode* to, std::size_t count), graph, from, to, count)
PLUMB_VHIP_SAME(hipGraphRemoveDependencies, graph_remove_dependencies_v10000,
                (Graph graph, const GraphNode* from, const GraphNode* to, std::size_t count), graph, from, to, count)
PLUMB_VHIP_SAME(hipGraphInstantiateWithFlags, graph_instantiate,
                (GraphExec * exec, Graph graph, unsigned long long flags), exec, graph, flags)
PLUMB_VHIP_SAME(hipGraphExecDestroy, graph_exec_destroy, (GraphExec exec), exec)
PLUMB_VHIP_STREAM(hipGraphLaunch, graph_launch, (GraphExec exec, Stream stream), exec, stream)
PLUMB_VHIP_STREAM(hipStreamGetCaptureInfo_v2, stream_get_capture_info_v11030,
                  (Stream stream, CaptureStatus* status, unsigned long long* id, Graph* graph, const GraphNode** nodes,
                   std::size_t* count),
                  stream, status, id, graph, nodes, count)
PLUMB_VHIP_SAME(hipEventCreateWithFlags, event_create, (Event * event, unsigned flags), event, flags)
PLUMB_VHIP_SAME(hipEventDestroy, event_destroy, (Event event), event)
CuResult hipEventRecord(Event event, Stream stream) {
    const CuResult there = alive(stream);
    const CuResult entered = there == CuResult::success ? enter() : there;
    if (entered != CuResult::success) {
        return entered;
    }
    {
        const std::lock_guard lock(state().mutex);
        state().nodes.erase(event); // its time is not that of a node any more
    }
    return plumb::vgpu::vgpu_event_record(event, stream);
}

CuResult hipGraphAddEventRecordNode(GraphNode* node, Graph graph, const GraphNode* after, std::size_t count,
                                    Event event) {
    const CuResult entered = enter();
    const CuResult added = entered == CuResult::success
                               ? plumb::vgpu::vgpu_graph_add_event_record_node(node, graph, after, count, event)
                               : entered;
    const std::lock_guard lock(state().mutex);
    if (added == CuResult::success) {
        state().nodes.insert(event);
    }
    return added;
}
CuResult hipGraphNodeGetType(GraphNode node, int* type) {
    const CuResult entered = enter();
    plumb::vgpu::NodeType common{};
    const CuResult asked =
        entered == CuResult::success ? plumb::vgpu::vgpu_graph_node_get_type(node, &common) : entered;
    *type = static_cast<int>(common) + (state().version < common_types_version ? 1 : 0);
    return asked;
}
CuResult hipStreamCreateWithFlags(Stream* stream, unsigned flags) {
    const CuResult entered = enter();
    const CuResult made = entered == CuResult::success ? plumb::vgpu::vgpu_stream_create(stream, flags) : entered;
    if (made == CuResult::success) {
        const std::lock_guard lock(state().mutex);
        state().streams.insert(*stream);
    }
    return made;
}
CuResult hipStreamDestroy(Stream stream) {
    const CuResult there = alive(stream);
    if (there != CuResult::success) {
        return there;
    }
    {
        const std::lock_guard lock(state().mutex);
        state().streams.erase(stream);
        state().capturing.erase(stream);
    }
    return plumb::vgpu::vgpu_stream_destroy(stream);
}
CuResult hipStreamBeginCapture(Stream stream, CaptureMode mode) {
    const CuResult entered = enter();
    const CuResult begun =
        entered == CuResult::success ? plumb::vgpu::vgpu_stream_begin_capture(stream, mode) : entered;
    if (begun == CuResult::success) {
        const std::lock_guard lock(state().mutex);
        state().capturing.insert(stream);
    }
    return begun;
}
CuResult hipStreamEndCapture(Stream stream, Graph* graph) {
    const CuResult ended = plumb::vgpu::vgpu_stream_end_capture(stream, graph);
    const std::lock_guard lock(state().mutex);
    state().capturing.erase(stream);
    if (ended == CuResult::success && state().broken.erase(stream) != 0) {
        static_cast<void>(plumb::vgpu::vgpu_graph_destroy(*graph));
        *graph = nullptr;
        return CuResult::stream_capture_invalidated;
    }
    return ended;
}
CuResult hipEventQuery(Event event) {
    question();
    const CuResult entered = enter();
    return entered == CuResult::success ? plumb::vgpu::vgpu_event_query(event) : entered;
}
CuResult hipEventSynchronize(Event event) {
    question();
    const CuResult entered = enter();
    return entered == CuResult::success ? plumb::vgpu::vgpu_event_synchronize(event) : entered;
}
CuResult hipEventElapsedTime(float* ms, Event begin, Event end) {
    question();
    const CuResult entered = enter();
    const CuResult asked =
        entered == CuResult::success ? plumb::vgpu::vgpu_event_elapsed_time_v2000(ms, begin, end) : entered;
    if (asked == CuResult::success && static_cast<double>(*ms) * 1e6 < state().skew_below_ns) {
        *ms += static_cast<float>(state().skew_ns / 1e6);
    }
    return asked == CuResult::success ? as_event_nodes_do(ms, begin, end) : asked;
}
}
