// SPDX-License-Identifier: Apache-2.0
// What happened, for tests to hold against what the profiler says happened.
#include <algorithm>
#include <cstring>

#include "virtual_gpu/observer.hpp"
#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

void ledger_error(std::string sentence) { gpu().ledger.errors.push_back(std::move(sentence)); }

void ledger_operation(Operation operation) {
    auto& operations = gpu().ledger.operations;
    const bool is_launch = operation.kind == OpKind::graph || operation.graph_id == 0;
    gpu().ledger.launches += is_launch ? 1 : 0;
    operation.launch = gpu().ledger.launches;
    if (is_launch) {
        tell_of_launch(operation);
    }
    operations.push_back(operation);
    if (operations.size() > gpu().config.keep_operations) {
        operations.pop_front();
    }
}

const char* intern(const std::string& name) { return gpu().names.insert(name).first->c_str(); }

std::vector<Operation> operations() {
    const std::lock_guard lock(gpu().mutex);
    const auto& all = gpu().ledger.operations;
    return {all.begin(), all.end()};
}

std::size_t operation_count() {
    const std::lock_guard lock(gpu().mutex);
    return gpu().ledger.operations.size();
}

std::vector<Invalidation> invalidations() {
    const std::lock_guard lock(gpu().mutex);
    return gpu().ledger.invalidations;
}

std::vector<Synchronisation> synchronisations() {
    const std::lock_guard lock(gpu().mutex);
    return gpu().ledger.synchronisations;
}

std::uint64_t synchronising_calls() {
    const auto all = synchronisations();
    return static_cast<std::uint64_t>(
        std::count_if(all.begin(), all.end(), [](const Synchronisation& s) { return !s.implicit; }));
}

std::uint64_t synchronising_calls(std::thread::id thread) {
    const auto all = synchronisations();
    return static_cast<std::uint64_t>(std::count_if(
        all.begin(), all.end(), [thread](const Synchronisation& s) { return !s.implicit && s.thread == thread; }));
}

namespace {

std::uint64_t sum_calls(std::string_view call, const std::thread::id* thread) {
    const std::lock_guard lock(gpu().mutex);
    std::uint64_t sum = 0;
    for (const auto& [caller, counts] : gpu().ledger.calls) {
        if (thread != nullptr && caller != *thread) {
            continue;
        }
        for (std::size_t i = 0; i < call_count; ++i) {
            if (call == "*" || call == info(static_cast<CallId>(i)).symbol) {
                sum += counts[i];
            }
        }
    }
    return sum;
}

void name_leak(std::string& text, std::size_t count, const char* what) {
    if (count == 0) {
        return;
    }
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

} // namespace

std::uint64_t calls(std::string_view call) { return sum_calls(call, nullptr); }

std::uint64_t calls(std::string_view call, std::thread::id thread) { return sum_calls(call, &thread); }

std::vector<std::string> called() {
    const std::lock_guard lock(gpu().mutex);
    std::set<std::string> names;
    for (const auto& [caller, counts] : gpu().ledger.calls) {
        for (std::size_t i = 0; i < call_count; ++i) {
            if (counts[i] != 0) {
                names.insert(info(static_cast<CallId>(i)).symbol);
            }
        }
    }
    return {names.begin(), names.end()};
}

Alive alive() {
    const std::lock_guard lock(gpu().mutex);
    const Gpu& g = gpu();
    Alive alive;
    g.contexts.for_each([&alive](Context, const ContextObject& context) {
        if (!context.primary || context.retained > 0) {
            ++alive.contexts;
        }
    });
    g.graphs.for_each([&alive](Graph, const GraphObject& graph) {
        if (!graph.owned_by_node && !graph.capturing) {
            ++alive.graphs;
        }
    });
    alive.streams = g.streams.alive();
    alive.events = g.events.alive();
    alive.modules = g.modules.alive();
    alive.execs = g.execs.alive();
    alive.captures = g.captures.size();
    alive.user_objects = g.user_objects.alive();
    for (const auto& [address, allocation] : g.allocations) {
        ++(allocation.host ? alive.host_allocations : alive.device_allocations);
    }
    return alive;
}

std::string leaks() {
    const Alive left = alive();
    std::string text;
    name_leak(text, left.contexts, "context");
    name_leak(text, left.streams, "stream");
    name_leak(text, left.events, "event");
    name_leak(text, left.modules, "module");
    name_leak(text, left.graphs, "graph");
    name_leak(text, left.execs, "executable");
    name_leak(text, left.device_allocations, "device allocation");
    name_leak(text, left.host_allocations, "host allocation");
    name_leak(text, left.captures, "capture");
    name_leak(text, left.user_objects, "user object");
    return text;
}

std::vector<std::string> errors() {
    const std::lock_guard lock(gpu().mutex);
    return gpu().ledger.errors;
}

Blocked blocked() {
    const std::lock_guard lock(gpu().mutex);
    return gpu().ledger.blocked;
}

std::uint64_t destroyed_in_flight() {
    const std::lock_guard lock(gpu().mutex);
    return gpu().ledger.destroyed_in_flight;
}

} // namespace plumb::vgpu
