// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/call.hpp"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>

#include "virtual_gpu/failures.hpp"

namespace plumb::vgpu {

namespace {

constexpr std::int64_t longest_spin_ns = 50'000; // beyond it, sleep

void pass_real_time(std::int64_t until_ns) {
    for (std::int64_t now = host_now(); now < until_ns; now = host_now()) {
        if (until_ns - now > longest_spin_ns) {
            const std::int64_t nap = until_ns - now - longest_spin_ns;
            const timespec time{nap / 1'000'000'000, nap % 1'000'000'000};
            nanosleep(&time, nullptr);
        }
    }
}

} // namespace

Call::Call(CallId id, std::initializer_list<const void*> objects, std::int64_t extra_cost_ns)
    : id_(id), lock_(gpu().mutex), began_ns_(host_now()) {
    Gpu& g = gpu();
    const auto number = static_cast<std::size_t>(id);
    ++g.ledger.calls[std::this_thread::get_id()][number];
    const Traits& t = traits(id);
    obey_rules();
    if (this_thread_state().in_host_function && t.needs_init) {
        ledger_error(std::string(symbol()) + " was called from a host function, where no driver call is allowed.");
        refuse(CuResult::not_permitted);
        return;
    }
    if (g.lost != CuResult::success && !t.survives_loss) {
        refuse(g.lost);
        return;
    }
    const auto own = g.costs.find(symbol());
    enter(objects, (own != g.costs.end() ? own->second : g.config.call_ns + extra_cost_ns) + slow_ns_);
    if (stopped_) {
        return;
    }
    if (!g.initialised && t.needs_init) {
        refuse(CuResult::not_initialized);
    } else if (t.needs_context && current_context() == nullptr) {
        refuse(CuResult::invalid_context);
    } else {
        obey_captures();
    }
}

Call::~Call() {
    settle();
    for (const void* object : objects_) {
        gpu().in_use.erase(object);
    }
}

// A failed call does nothing; one that releases something releases it all the same and then answers with the error.
void Call::obey_rules() {
    const RuleOutcome outcome = apply_rules(symbol());
    slow_ns_ = outcome.slow_ns;
    hold_ = outcome.hold;
    if (outcome.loses) {
        gpu().lost = outcome.error;
    }
    if (outcome.error == CuResult::success) {
        return;
    }
    result_ = outcome.error;
    stopped_ = !traits(id_).releases;
}

void Call::enter(std::initializer_list<const void*> objects, std::int64_t cost_ns) {
    Gpu& g = gpu();
    for (const void* object : objects) {
        if (const auto node = g.nodes.find(static_cast<GraphNode>(const_cast<void*>(object)))) {
            object = node->graph->handle;
        }
        const auto [place, is_new] = g.in_use.emplace(object, std::this_thread::get_id());
        if (is_new) {
            objects_.push_back(object);
        } else if (place->second != std::this_thread::get_id()) {
            ledger_error(std::string(symbol()) + " uses a graph object that another thread is using in a call.");
        }
    }
    if (hold_) {
        lock_.unlock();
        stay_in(*hold_);
        lock_.lock();
    } else if (!objects_.empty() && g.ledger.calls.size() > 1) {
        // Another thread gets a chance to walk into the same object.
        lock_.unlock();
        sched_yield();
        lock_.lock();
    }
    spend(cost_ns);
}

void Call::obey_captures() {
    if (!traits(id_).unsafe) {
        return;
    }
    const auto captures = forbidding_captures();
    if (captures.empty()) {
        return;
    }
    for (const auto& capture : captures) {
        invalidate(*capture, symbol());
    }
    refuse(CuResult::stream_capture_unsupported);
}

void Call::spend(std::int64_t ns) { wait_until(host_now() + ns); }

void Call::wait_until(std::int64_t time_ns) {
    if (gpu().config.time == Time::virtual_time) {
        advance_virtual(time_ns);
    } else {
        lock_.unlock();
        pass_real_time(time_ns);
        lock_.lock();
    }
    settle();
}

void Call::synchronise(std::int64_t time_ns) {
    const std::int64_t begin = host_now();
    if (time_ns > begin) {
        wait_until(time_ns + gpu().config.wake_ns);
    }
    settle(); // in real time the end may have come since the call began
    gpu().ledger.synchronisations.push_back({symbol(), std::this_thread::get_id(),
                                             traits(id_).waits_unsaid || !traits(id_).synchronises,
                                             host_now() - begin});
}

void Call::load(Context context) {
    if (gpu().config.loading_synchronises) {
        synchronise(busy_until(context));
    }
}

void Call::load(FunctionObject& function) {
    if (!std::exchange(function.loaded, true)) {
        load(function.context);
    }
}

CuResult Call::refuse(CuResult error) {
    result_ = error;
    stopped_ = true;
    return error;
}

CuResult Call::break_capture(CaptureObject& capture, CuResult error) {
    invalidate(capture, symbol());
    return refuse(error);
}

std::shared_ptr<EventObject> Call::event(Event handle) { return look_up(gpu().events, handle, "an event"); }

std::shared_ptr<GraphObject> Call::graph(Graph handle) {
    auto object = look_up(gpu().graphs, handle, "a graph");
    if (!object) {
        refuse(CuResult::invalid_value);
    }
    return object;
}

std::shared_ptr<NodeObject> Call::node(GraphNode handle) {
    if (handle == poisoned_node()) {
        ledger_error(std::string(symbol()) + " got a node out of a stale frontier array.");
    }
    auto object = look_up(gpu().nodes, handle, "a node");
    if (!object) {
        refuse(CuResult::invalid_value);
    }
    return object;
}

std::shared_ptr<ExecObject> Call::exec(GraphExec handle) {
    auto object = look_up(gpu().execs, handle, "an executable graph");
    if (!object) {
        refuse(CuResult::invalid_value);
    }
    return object;
}

} // namespace plumb::vgpu
