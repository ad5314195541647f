// SPDX-License-Identifier: Apache-2.0
// The stand-in libcupti.so: the ledger's kernels as activity records, on the clock of the program's choice.
#include "virtual_gpu/cupti.hpp"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "virtual_gpu/observer.hpp"

namespace plumb::vgpu::cupti {

namespace {

static_assert(offsetof(KernelRecord, start) == 16 && offsetof(KernelRecord, grid) == 52);
static_assert(offsetof(KernelRecord, correlation_id) == 92 && offsetof(KernelRecord, name) == 104);
static_assert(offsetof(KernelRecord, queued) == 120 && offsetof(KernelRecord, graph_node_id) == 144);
static_assert(offsetof(CallbackData, context_uid) == 48 && offsetof(CallbackData, correlation_id) == 64);
static_assert(offsetof(KernelRecord, graph_id) == 156 && offsetof(KernelRecord, channel_id) == 168);
static_assert(offsetof(KernelRecord, local_total_v2) == 192 && sizeof(KernelRecord) == 216);

struct State {
    std::mutex mutex;
    BufferRequested requested = nullptr;
    BufferCompleted completed = nullptr;
    TimestampFunction timestamp = nullptr;
    bool spoiled = false; // the next kernel's times: the function was registered again
    bool enabled = false;
    std::uint32_t kind = kind_concurrent_kernel;
    std::size_t next_operation = 0;       // the first one not yet looked at
    std::vector<std::size_t> undelivered; // kernels, by their places in the ledger
    std::uint8_t* buffer = nullptr;       // the program's, not yet given back
    std::size_t buffer_bytes = 0, most_records = 0;
    // Read under the Gpu's lock, where this one must not be taken: hence atomic.
    std::atomic<Callback> callback = nullptr;
    std::atomic<void*> user = nullptr;
    std::atomic<bool> nodes_created = false, nodes_cloned = false, kernels_launched = false, graphs_launched = false;
};

State& state() {
    static State* const one = new State;
    return *one;
}

std::uint64_t real_time() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t now(const State& s) { return s.timestamp != nullptr ? s.timestamp() : real_time(); }

KernelRecord record_of(const Operation& operation, const State& s, std::int64_t to_clock) {
    KernelRecord record{};
    record.kind = s.kind;
    record.start = static_cast<std::uint64_t>(operation.start_ns + to_clock);
    record.end = static_cast<std::uint64_t>(operation.end_ns + to_clock);
    record.completed = record.end;
    record.device_id = static_cast<std::uint32_t>(operation.device);
    record.context_id = 1;
    record.stream_id = static_cast<std::uint32_t>(operation.stream_id);
    for (int i = 0; i < 3; ++i) {
        record.grid[i] = static_cast<std::int32_t>(operation.grid[i]);
        record.block[i] = static_cast<std::int32_t>(operation.block[i]);
    }
    record.correlation_id = operation.launch;
    record.name = operation.name;
    record.graph_node_id = operation.node_id;
    record.graph_id = static_cast<std::uint32_t>(operation.graph_id);
    return record;
}

/// From the true time to the program's clock; of some tries the one that was interrupted least.
std::int64_t to_clock_now(const State& s) {
    std::int64_t best = 0;
    std::uint64_t shortest = ~std::uint64_t{0};
    for (int i = 0; i < 32; ++i) {
        const std::uint64_t before = now(s);
        const std::int64_t true_now = now_ns();
        if (const std::uint64_t width = now(s) - before; width < shortest) {
            shortest = width;
            best = static_cast<std::int64_t>(before + width / 2) - true_now;
        }
    }
    return best;
}

/// Kernels enqueued since the last look, while they were traced.
void gather(State& s, const std::vector<Operation>& all) {
    if (all.size() < s.next_operation) { // another virtual GPU
        s.next_operation = 0;
        s.undelivered.clear();
    }
    for (; s.next_operation < all.size(); ++s.next_operation) {
        if (s.enabled && all[s.next_operation].kind == OpKind::kernel) {
            s.undelivered.push_back(s.next_operation);
        }
    }
}

/// A kernel has its place in a buffer from its launch on, and a buffer stays until all of its kernels have ended. Forced, it comes at
/// once, and those that still run have no time.
void deliver(State& s, bool forced) {
    const auto all = operations();
    gather(s, all);
    const std::int64_t true_now = now_ns();
    const std::int64_t to_clock = to_clock_now(s);
    while (!s.undelivered.empty()) {
        if (s.buffer == nullptr) {
            s.requested(&s.buffer, &s.buffer_bytes, &s.most_records);
        }
        std::size_t count = std::min(s.undelivered.size(), s.buffer_bytes / sizeof(KernelRecord));
        if (s.most_records != 0) {
            count = std::min(count, s.most_records);
        }
        if (s.buffer == nullptr || count == 0) {
            s.undelivered.clear(); // declined: these are lost, as the real one loses them
            return;
        }
        const auto end = s.undelivered.begin() + static_cast<std::ptrdiff_t>(count);
        const bool ended =
            std::all_of(s.undelivered.begin(), end, [&](std::size_t index) { return all[index].end_ns <= true_now; });
        if (!ended && !forced) {
            return;
        }
        auto* const records = reinterpret_cast<KernelRecord*>(s.buffer);
        for (std::size_t i = 0; i < count; ++i) {
            const Operation& operation = all[s.undelivered[i]];
            const std::int64_t spoiled_ns = std::exchange(s.spoiled, false) ? 100'000'000'000'000 : 0;
            records[i] = record_of(operation, s, to_clock + spoiled_ns);
            if (operation.end_ns > true_now) {
                records[i].start = records[i].end = records[i].completed = 0;
            }
        }
        s.undelivered.erase(s.undelivered.begin(), end);
        s.completed(nullptr, 0, std::exchange(s.buffer, nullptr), s.buffer_bytes, count * sizeof(KernelRecord));
    }
}

void pass_on(const NodeBirth& birth) {
    State& s = state();
    const Callback callback = s.callback;
    if (callback == nullptr || !(birth.cloned ? s.nodes_cloned : s.nodes_created)) {
        return;
    }
    GraphData graph{birth.graph, nullptr,   birth.node, birth.original, static_cast<int>(birth.type),
                    nullptr,     birth.exec};
    const ResourceData data{nullptr, nullptr, &graph};
    callback(s.user, domain_resource, birth.cloned ? resource_node_cloned : resource_node_created, &data);
}

void pass_on_launch(const Operation& operation) {
    State& s = state();
    const Callback callback = s.callback;
    const bool of_graph = operation.kind == OpKind::graph;
    if (callback == nullptr || (!of_graph && operation.kind != OpKind::kernel) ||
        !(of_graph ? s.graphs_launched : s.kernels_launched)) {
        return;
    }
    CallbackData data{};
    data.function_name = of_graph ? "cuGraphLaunch" : "cuLaunchKernel";
    data.correlation_id = operation.launch;
    callback(s.user, domain_driver, of_graph ? driver_graph_launch : driver_launch_kernel, &data);
}

bool is_kernel_kind(std::uint32_t kind) { return kind == kind_kernel || kind == kind_concurrent_kernel; }

} // namespace

} // namespace plumb::vgpu::cupti

using namespace plumb::vgpu;
using namespace plumb::vgpu::cupti;

extern "C" {

PLUMB_VGPU_API Result cuptiGetVersion(std::uint32_t* version) {
    *version = api_version;
    return Result::success;
}

PLUMB_VGPU_API Result cuptiGetTimestamp(std::uint64_t* timestamp) {
    *timestamp = now(state());
    return Result::success;
}

PLUMB_VGPU_API Result cuptiGetResultString(Result result, const char** text) {
    *text = result == Result::success ? "CUPTI_SUCCESS" : "CUPTI_ERROR";
    return Result::success;
}

PLUMB_VGPU_API Result cuptiActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
    if (requested == nullptr || completed == nullptr) {
        return Result::invalid_parameter;
    }
    const std::lock_guard lock(state().mutex);
    state().requested = requested;
    state().completed = completed;
    return Result::success;
}

PLUMB_VGPU_API Result cuptiActivityRegisterTimestampCallback(TimestampFunction function) {
    if (function == nullptr) {
        return Result::invalid_parameter;
    }
    const std::lock_guard lock(state().mutex);
    state().spoiled = state().timestamp != nullptr;
    state().timestamp = function;
    return Result::success;
}

PLUMB_VGPU_API Result cuptiActivityEnable(std::uint32_t kind) {
    if (!is_kernel_kind(kind)) {
        return Result::success; // other kinds are taken and have no records
    }
    const std::lock_guard lock(state().mutex);
    gather(state(), operations());
    state().enabled = true;
    state().kind = kind;
    return Result::success;
}

PLUMB_VGPU_API Result cuptiActivityDisable(std::uint32_t kind) {
    const std::lock_guard lock(state().mutex);
    gather(state(), operations());
    state().enabled = state().enabled && !is_kernel_kind(kind);
    return Result::success;
}

PLUMB_VGPU_API Result cuptiActivityFlushAll(std::uint32_t flag) {
    const std::lock_guard lock(state().mutex);
    if (state().requested == nullptr) {
        return Result::not_initialized;
    }
    deliver(state(), flag == flush_forced);
    return Result::success;
}

PLUMB_VGPU_API Result cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, void** record) {
    if (buffer == nullptr || record == nullptr) {
        return Result::invalid_parameter;
    }
    auto* next = *record == nullptr ? buffer : static_cast<std::uint8_t*>(*record) + sizeof(KernelRecord);
    if (next + sizeof(KernelRecord) > buffer + valid_bytes) {
        return Result::max_limit_reached;
    }
    *record = next;
    return Result::success;
}

PLUMB_VGPU_API Result cuptiActivityGetNumDroppedRecords(CUctx_st*, std::uint32_t, std::size_t* dropped) {
    *dropped = 0;
    return Result::success;
}

PLUMB_VGPU_API Result cuptiSubscribe(void** subscriber, Callback callback, void* user) {
    if (subscriber == nullptr || callback == nullptr) {
        return Result::invalid_parameter;
    }
    const std::lock_guard lock(state().mutex);
    if (state().callback != nullptr) {
        return Result::multiple_subscribers;
    }
    state().user = user;
    state().callback = callback;
    *subscriber = &state();
    observe_births(pass_on);
    observe_launches(pass_on_launch);
    return Result::success;
}

PLUMB_VGPU_API Result cuptiUnsubscribe(void*) {
    observe_births(nullptr);
    observe_launches(nullptr);
    const std::lock_guard lock(state().mutex);
    state().callback = nullptr;
    for (std::atomic<bool>* told :
         {&state().nodes_created, &state().nodes_cloned, &state().kernels_launched, &state().graphs_launched}) {
        *told = false;
    }
    return Result::success;
}

PLUMB_VGPU_API Result cuptiEnableCallback(std::uint32_t enable, void*, std::uint32_t domain, std::uint32_t id) {
    const std::lock_guard lock(state().mutex);
    if (domain == domain_resource && id == resource_node_created) {
        state().nodes_created = enable != 0;
    }
    if (domain == domain_resource && id == resource_node_cloned) {
        state().nodes_cloned = enable != 0;
    }
    if (domain == domain_driver && id == driver_launch_kernel) {
        state().kernels_launched = enable != 0;
    }
    if (domain == domain_driver && id == driver_graph_launch) {
        state().graphs_launched = enable != 0;
    }
    return Result::success;
}

PLUMB_VGPU_API Result cuptiEnableDomain(std::uint32_t enable, void*, std::uint32_t domain) {
    const std::lock_guard lock(state().mutex);
    if (domain != domain_resource) {
        return Result::success;
    }
    state().nodes_created = enable != 0;
    state().nodes_cloned = enable != 0;
    return Result::success;
}

PLUMB_VGPU_API Result cuptiGetGraphNodeId(CUgraphNode_st* node, std::uint64_t* id) {
    *id = node_id(node);
    return *id == 0 ? Result::invalid_parameter : Result::success;
}

PLUMB_VGPU_API Result cuptiGetGraphExecId(CUgraphExec_st* exec, std::uint32_t* id) {
    *id = static_cast<std::uint32_t>(graph_id(exec));
    return *id == 0 ? Result::invalid_parameter : Result::success;
}
}
