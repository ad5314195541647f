// SPDX-License-Identifier: Apache-2.0
#include "attach/cudart/graphs.hpp"

#include <mutex>
#include <string>
#include <utility>

#include "attach/attachment.hpp"
#include "attach/cupti/kernels.hpp"
#include "backends/cuda/driver.hpp"

namespace plumb::attach::cudart {
namespace {

constexpr std::uint64_t worth_a_look = 2; // launches between two updates: a twin is built after the second
constexpr std::uint64_t most_hasty_updates = 16;

/// libcudart makes a context current where a thread has none; the driver's own launch does not.
bool has_context() {
    const Result<backends::cuda::Driver>& driver = backends::cuda::driver();
    backends::cuda::Context context = nullptr;
    return driver.ok() && driver->ctx_get_current(&context) == backends::cuda::CuResult::success && context != nullptr;
}

} // namespace

void AttachedGraphs::look(CUgraphExec_st* executable, std::uint64_t key, CUgraph_st* graph) {
    const std::uint64_t changes = changes_.load(std::memory_order_relaxed);
    Result<GraphProbe> probe = profiler_.graph_captured(key, graph);
    if (!probe.ok()) {
        switch_off(probe.error());
    }
    const std::unique_lock lock(mutex_);
    Known& known = known_.try_emplace(executable, key).first->second;
    known.probe = probe.ok() ? *std::move(probe) : GraphProbe();
    known.graph = graph;
    known.changes = changes;
    known.launches.store(0, std::memory_order_relaxed);
}

void AttachedGraphs::switch_off(const Error& error) {
    if (!off_.exchange(true, std::memory_order_relaxed)) {
        say("CUDA graphs are launched plainly from now on: " + error.message);
    }
}

void AttachedGraphs::instantiated(CUgraphExec_st* executable, CUgraph_st* graph) {
    const std::uint64_t key = instantiated_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!off() && profiler_.enabled() && !cupti::traces_kernels()) {
        look(executable, key, graph);
    }
}

void AttachedGraphs::updated(CUgraphExec_st* executable, CUgraph_st* graph) {
    updated_.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t key = 0;
    bool hasty = false;
    {
        const std::unique_lock lock(mutex_);
        const auto found = known_.find(executable);
        if (found == known_.end()) {
            return;
        }
        Known& known = found->second;
        // llama.cpp updates what it has just instantiated. Scopes noted in a capture are there once: the probe has them.
        if (known.graph == graph && known.changes == changes_.load(std::memory_order_relaxed)) {
            return;
        }
        key = known.key;
        known.hasty_updates += known.launches.load(std::memory_order_relaxed) < worth_a_look;
        hasty = known.hasty_updates >= most_hasty_updates;
    }
    if (hasty) {
        forget(executable, " is updated before nearly each of its launches");
    } else if (off()) {
        forget(executable, "");
    } else {
        look(executable, key, graph);
    }
}

void AttachedGraphs::changed(CUgraphExec_st* executable, const char* call) {
    forget(executable, std::string(" is changed by ") + call + ", which cannot be read back");
}

void AttachedGraphs::destroyed(CUgraphExec_st* executable) { forget(executable, ""); }

void AttachedGraphs::forget(CUgraphExec_st* executable, const std::string& why) {
    std::uint64_t key = 0;
    {
        const std::unique_lock lock(mutex_);
        const auto found = known_.find(executable);
        if (found == known_.end()) {
            return;
        }
        key = found->second.key;
        known_.erase(found);
    }
    if (!why.empty()) {
        say("CUDA graph " + std::to_string(key) + why + ": it is launched plainly from now on");
    }
    profiler_.graph_evicted(key);
}

int AttachedGraphs::launch(CUgraphExec_st* executable, CUstream_st* stream,
                           int (*original)(CUgraphExec_st*, CUstream_st*)) {
    GraphProbe probe;
    {
        const std::shared_lock lock(mutex_);
        const auto found = known_.find(executable);
        if (found == known_.end() || off() || !profiler_.enabled() || !has_context()) {
            return original(executable, stream);
        }
        probe = found->second.probe;
        found->second.launches.fetch_add(1, std::memory_order_relaxed);
    }
    // Where the driver refuses, libcudart is asked as well: its answer is the engine's, and what cudaGetLastError() gives.
    if (!probe.launch(executable, stream).ok()) {
        return original(executable, stream);
    }
    launched_.fetch_add(1, std::memory_order_relaxed);
    return 0;
}

AttachedGraphs::Counts AttachedGraphs::counts() const {
    const auto of = [](const std::atomic<std::uint64_t>& value) {
        return value.load(std::memory_order_relaxed);
    };
    return {of(instantiated_), of(updated_), of(launched_)};
}

} // namespace plumb::attach::cudart
