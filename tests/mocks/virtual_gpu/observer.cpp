// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/observer.hpp"

#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

namespace {

// Handles of an executable's own nodes: no driver call takes them, only their ids are asked for.
constexpr std::uintptr_t exec_node_base = std::uintptr_t{0x7b} << 40;
constexpr unsigned id_shift = 6;

std::function<void(const NodeBirth&)>& observer() {
    static auto* const one = new std::function<void(const NodeBirth&)>;
    return *one;
}

std::function<void(const Operation&)>& launch_observer() {
    static auto* const one = new std::function<void(const Operation&)>;
    return *one;
}

} // namespace

void observe_births(std::function<void(const NodeBirth&)> wanted) {
    const std::lock_guard lock(gpu().mutex);
    observer() = std::move(wanted);
}

void tell_of_birth(const NodeBirth& birth) {
    if (observer()) {
        observer()(birth);
    }
}

void observe_launches(std::function<void(const Operation&)> wanted) {
    const std::lock_guard lock(gpu().mutex);
    launch_observer() = std::move(wanted);
}

void tell_of_launch(const Operation& operation) {
    if (launch_observer()) {
        launch_observer()(operation);
    }
}

GraphNode exec_node_handle(std::uint64_t id) { return reinterpret_cast<GraphNode>(exec_node_base + (id << id_shift)); }

std::uint64_t node_id(GraphNode node) {
    const std::lock_guard lock(gpu().mutex);
    const auto value = reinterpret_cast<std::uintptr_t>(node);
    if (value >= exec_node_base) {
        return (value - exec_node_base) >> id_shift;
    }
    const auto object = gpu().nodes.find(node);
    return object ? object->id : 0;
}

std::uint64_t graph_id(GraphExec exec) {
    const std::lock_guard lock(gpu().mutex);
    const auto object = gpu().execs.find(exec);
    return object ? object->id : 0;
}

} // namespace plumb::vgpu
