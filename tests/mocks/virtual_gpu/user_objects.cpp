// SPDX-License-Identifier: Apache-2.0
// User objects: what a program ties to a graph, and how many references graphs, clones and executables hold.
#include "virtual_gpu/call.hpp"

namespace plumb::vgpu {

void retain(const References& references) {
    for (const auto& [object, count] : references) {
        gpu().user_objects.find(object)->references += count;
    }
}

// The destructor runs as a host function does: at the next call, or when the device has come so far.
void release(const References& references, std::int64_t when_ns) {
    if (references.empty()) {
        return;
    }
    schedule_effect(when_ns, [references] {
        for (const auto& [handle, count] : references) {
            const auto object = gpu().user_objects.find(handle);
            object->references -= count;
            if (object->references == 0) {
                gpu().user_objects.take(handle);
                object->destroy(object->pointer);
            }
        }
    });
}

void add_references(References& to, const References& more) {
    for (const auto& [object, count] : more) {
        to[object] += count;
    }
}

extern "C" {

CuResult vgpu_user_object_create(UserObject* object, void* pointer, HostFunction destroy, unsigned references,
                                 unsigned flags) {
    PLUMB_VGPU_ENTER(user_object_create);
    if (destroy == nullptr || references == 0 || flags != user_object_no_destructor_sync) {
        return CuResult::invalid_value;
    }
    auto made = std::make_shared<UserObjectState>();
    made->references = references;
    made->destroy = destroy;
    made->pointer = pointer;
    *object = gpu().user_objects.give(made);
    return call.done();
}

CuResult vgpu_user_object_retain(UserObject object, unsigned count) {
    PLUMB_VGPU_ENTER(user_object_retain);
    if (!gpu().user_objects.find(object) || count == 0) {
        return CuResult::invalid_value;
    }
    retain({{object, count}});
    return call.done();
}

CuResult vgpu_user_object_release(UserObject object, unsigned count) {
    PLUMB_VGPU_ENTER(user_object_release);
    if (!gpu().user_objects.find(object) || count == 0) {
        return CuResult::invalid_value;
    }
    release({{object, count}}, host_now());
    return call.done();
}

CuResult vgpu_graph_retain_user_object(Graph handle, UserObject object, unsigned count, unsigned flags) {
    PLUMB_VGPU_ENTER(graph_retain_user_object, {handle});
    const auto graph = call.graph(handle);
    if (!graph || !gpu().user_objects.find(object) || count == 0 || flags > graph_user_object_move) {
        return CuResult::invalid_value;
    }
    if (flags != graph_user_object_move) {
        retain({{object, count}});
    }
    add_references(graph->objects, {{object, count}});
    return call.done();
}

CuResult vgpu_graph_release_user_object(Graph handle, UserObject object, unsigned count) {
    PLUMB_VGPU_ENTER(graph_release_user_object, {handle});
    const auto graph = call.graph(handle);
    const auto held = graph ? graph->objects.find(object) : References::iterator();
    if (!graph || held == graph->objects.end() || count == 0 || count > held->second) {
        return CuResult::invalid_value;
    }
    held->second -= count;
    if (held->second == 0) {
        graph->objects.erase(held);
    }
    release({{object, count}}, host_now());
    return call.done();
}

} // extern "C"

} // namespace plumb::vgpu
