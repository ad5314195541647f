// SPDX-License-Identifier: Apache-2.0
// Queues of the vendors' handles, and captured graphs.
#include <memory>

#include "capi/handles.hpp"
#include "plumb/backend_timer.hpp"
#include "plumb/cuda.hpp"
#include "plumb/hip.hpp"
#include "plumb/metal.hpp"
#include "plumb/opencl.hpp"
#include "plumb/vulkan.hpp"

using namespace plumb::capi;
using plumb::ErrorCode;

struct plumb_vulkan {
    plumb::VulkanQueue queue;
};
struct plumb_graph {
    bool on_hip;
    plumb::GraphProbe cuda; // the one of both that is not used launches nothing
    plumb::HipGraphProbe hip;
};

namespace {

plumb_code no_vulkan() noexcept {
    return fail(ErrorCode::invalid_argument, "the plumb_vulkan is NULL: give what plumb_vulkan_open() made");
}

template <class Find>
plumb_code put_queue(plumb_queue* out, Find find) noexcept {
    if (!has_room(out, sizeof *out, "plumb_queue")) {
        return plumb_invalid_argument;
    }
    return guarded([&]() -> plumb_code {
        const plumb::Queue found = find();
        out->track = found.track;
        out->timer = found.timer;
        return plumb_ok;
    });
}

/// What both kinds of captured graphs share: `probe` gives a Result of that kind's probe, `put` stores it.
template <class Probe, class Put>
plumb_code put_graph(plumb_profiler* profiler, plumb_graph** graph, Probe probe, Put put) noexcept {
    if (graph == nullptr) {
        return missing("the place for the graph");
    }
    *graph = nullptr;
    if (profiler == nullptr) {
        return no_profiler();
    }
    return guarded([&]() -> plumb_code {
        std::unique_ptr<plumb_graph> made(new plumb_graph{});
        auto found = probe(profiler->profiler);
        if (!found.ok()) {
            return fail(found.error());
        }
        put(*made, *found);
        *graph = made.release();
        return plumb_ok;
    });
}

} // namespace

plumb_code plumb_cuda(void* stream, plumb_queue* queue) {
    return put_queue(queue, [&] { return plumb::cuda(static_cast<CUstream_st*>(stream)); });
}
plumb_code plumb_hip(void* stream, plumb_queue* queue) {
    return put_queue(queue, [&] { return plumb::hip(stream); });
}
plumb_code plumb_opencl(void* command_queue, plumb_queue* queue) {
    return put_queue(queue, [&] { return plumb::opencl(command_queue); });
}
plumb_code plumb_metal(void* command_queue, plumb_queue* queue) {
    return put_queue(queue, [&] { return plumb::metal(command_queue); });
}

plumb_code plumb_sampled(const char* name, plumb_queue* queue) {
    if (name == nullptr) {
        return missing("the name of a queue");
    }
    if (!has_room(queue, sizeof *queue, "plumb_queue")) {
        return plumb_invalid_argument;
    }
    return guarded([&]() -> plumb_code {
        const plumb::Result<plumb::Queue> made = plumb::Cpu::sampled_queue(name);
        if (!made.ok()) {
            return fail(made.error());
        }
        queue->track = made->track;
        queue->timer = made->timer;
        return plumb_ok;
    });
}

plumb_code plumb_vulkan_open(const plumb_vulkan_handles* handles, plumb_vulkan** opened) {
    if (opened == nullptr) {
        return missing("the place for the plumb_vulkan");
    }
    *opened = nullptr;
    if (!fits(handles, "plumb_vulkan_handles")) {
        return plumb_invalid_argument;
    }
    return guarded([&]() -> plumb_code {
        plumb::VulkanHandles given;
        given.instance = static_cast<VkInstance_T*>(handles->instance);
        given.physical_device = static_cast<VkPhysicalDevice_T*>(handles->physical_device);
        given.device = static_cast<VkDevice_T*>(handles->device);
        given.queue_family = handles->queue_family;
        given.queue = static_cast<VkQueue_T*>(handles->queue);
        given.host_query_reset = handles->host_query_reset != 0;
        given.get_instance_proc_addr =
            reinterpret_cast<decltype(given.get_instance_proc_addr)>(handles->get_instance_proc_addr);
        std::unique_ptr<plumb_vulkan> made(new plumb_vulkan{plumb::vulkan(given)});
        if (!made->queue.status().ok()) {
            return fail(made->queue.status().error());
        }
        *opened = made.release();
        return plumb_ok;
    });
}
plumb_code plumb_vulkan_queue(plumb_vulkan* vulkan, plumb_queue* queue) {
    return vulkan == nullptr ? no_vulkan() : put_queue(queue, [&] { return vulkan->queue.queue(); });
}
plumb_code plumb_vulkan_record(plumb_vulkan* vulkan, void* commands, int again, plumb_queue* queue) {
    if (vulkan == nullptr) {
        return no_vulkan();
    }
    return put_queue(queue, [&] {
        return vulkan->queue.record(static_cast<VkCommandBuffer_T*>(commands),
                                    again != 0 ? plumb::VulkanUse::again : plumb::VulkanUse::once);
    });
}
plumb_code plumb_vulkan_submitting(plumb_vulkan* vulkan, plumb_profiler* profiler, void* commands) {
    if (vulkan == nullptr || profiler == nullptr) {
        return vulkan == nullptr ? no_vulkan() : no_profiler();
    }
    return guarded([&]() -> plumb_code {
        return code_of(vulkan->queue.submitting(profiler->profiler, static_cast<VkCommandBuffer_T*>(commands)));
    });
}
plumb_code plumb_vulkan_forget(plumb_vulkan* vulkan, void* commands) {
    if (vulkan == nullptr) {
        return no_vulkan();
    }
    vulkan->queue.forget(static_cast<VkCommandBuffer_T*>(commands));
    return plumb_ok;
}
plumb_code plumb_vulkan_close(plumb_vulkan* vulkan) {
    if (vulkan == nullptr) {
        return no_vulkan();
    }
    delete vulkan;
    return plumb_ok;
}

plumb_code plumb_graph_captured(plumb_profiler* profiler, uint64_t key, void* captured, plumb_graph** graph) {
    return put_graph(
        profiler, graph,
        [&](plumb::Profiler& prof) { return prof.graph_captured(key, static_cast<CUgraph_st*>(captured)); },
        [](plumb_graph& made, const plumb::GraphProbe& probe) { made.cuda = probe; });
}
plumb_code plumb_hip_graph_captured(plumb_profiler* profiler, uint64_t key, void* captured, plumb_graph** graph) {
    return put_graph(
        profiler, graph, [&](plumb::Profiler& prof) { return prof.hip_graph_captured(key, captured); },
        [](plumb_graph& made, const plumb::HipGraphProbe& probe) {
            made.on_hip = true;
            made.hip = probe;
        });
}
plumb_code plumb_graph_launch(plumb_graph* graph, void* executable, void* stream) {
    if (graph == nullptr) {
        return fail(ErrorCode::invalid_argument, "the plumb_graph is NULL: launch that graph yourself, or give what "
                                                 "plumb_graph_captured() made");
    }
    return guarded([&]() -> plumb_code {
        return code_of(graph->on_hip ? graph->hip.launch(executable, stream)
                                     : graph->cuda.launch(static_cast<CUgraphExec_st*>(executable),
                                                          static_cast<CUstream_st*>(stream)));
    });
}
plumb_code plumb_graph_evicted(plumb_profiler* profiler, uint64_t key) {
    if (profiler == nullptr) {
        return no_profiler();
    }
    return guarded([&]() -> plumb_code {
        profiler->profiler.graph_evicted(key);
        return plumb_ok;
    });
}
plumb_code plumb_graphs_evicted_all(plumb_profiler* profiler, double timeout_seconds) {
    return profiler == nullptr
               ? no_profiler()
               : guarded([&] { return code_of(profiler->profiler.graphs_evicted_all(timeout_seconds)); });
}
plumb_code plumb_graph_release(plumb_graph* graph) {
    if (graph == nullptr) {
        return fail(ErrorCode::invalid_argument,
                    "the plumb_graph is NULL: give what plumb_graph_captured() made, once");
    }
    delete graph;
    return plumb_ok;
}
