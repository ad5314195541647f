// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/control.hpp"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "virtual_gpu/observer.hpp"
#include "virtual_gpu/settings.hpp"
#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

void restart_clock(Time time);

namespace {

template <class T>
void set(T& setting, const std::string& value) {
    setting = static_cast<T>(std::strtod(value.c_str(), nullptr));
}

// PLUMB_VIRTUAL_GPU="kernel_min_ns=2000,kernel_max_ns=9000": for programs that know nothing of all this.
Config config_of_environment() {
    Config config;
    config.time = Time::real_time;
    const char* text = std::getenv("PLUMB_VIRTUAL_GPU");
    const std::string all = text == nullptr ? "" : text;
    for (std::size_t from = 0; from < all.size();) {
        const std::size_t comma = std::min(all.find(',', from), all.size());
        const std::string item = all.substr(from, comma - from);
        const std::size_t equals = std::min(item.find('='), item.size());
        const std::string key = item.substr(0, equals);
        const std::string value = equals < item.size() ? item.substr(equals + 1) : "1";
        from = comma + 1;
        bool known = false;
#define PLUMB_VGPU_SET(name)     \
    if (key == #name) {          \
        set(config.name, value); \
        known = true;            \
    }
        PLUMB_VGPU_SETTINGS(PLUMB_VGPU_SET)
#undef PLUMB_VGPU_SET
        if (!known) {
            std::fprintf(stderr, "PLUMB_VIRTUAL_GPU: unknown setting '%s'.\n", key.c_str());
        }
    }
    return config;
}

std::unique_ptr<Gpu> make_gpu(const Config& config) {
    auto made = std::make_unique<Gpu>();
    made->config = config;
    made->random.seed(config.seed);
    restart_clock(config.time);
    add_stamp_kernels(*made);
    return made;
}

std::int64_t last_end() {
    std::int64_t end = 0;
    gpu().contexts.for_each([&end](Context handle, const ContextObject&) { end = std::max(end, busy_until(handle)); });
    return end;
}

} // namespace

// Never destroyed: threads of the program may outlive every static object.
Gpu& gpu() {
    static Gpu* const one = make_gpu(config_of_environment()).release();
    return *one;
}

ThreadState& this_thread_state() {
    thread_local ThreadState state;
    if (state.generation != gpu().generation) {
        state = {};
        state.generation = gpu().generation;
    }
    return state;
}

void reset(const Config& config) {
    Gpu& g = gpu();
    const std::lock_guard lock(g.mutex);
    ++g.generation;
    for (const auto& capture : g.captures) { // streams and their capture hold each other
        capture->origin.reset();
        capture->streams.clear();
    }
    g.initialised = false;
    // next_id goes on: what keeps things by id over a reset must not take the new ones for the old.
    g.next_graph_id = 1;
    g.contexts = Handles<ContextObject, Context>{1};
    g.streams = Handles<StreamObject, Stream>{2};
    g.events = Handles<EventObject, Event>{3};
    g.modules = Handles<ModuleObject, Module>{4};
    g.functions = Handles<FunctionObject, Function>{5};
    g.graphs = Handles<GraphObject, Graph>{6};
    g.nodes = Handles<NodeObject, GraphNode>{7};
    g.execs = Handles<ExecObject, GraphExec>{8};
    g.user_objects = Handles<UserObjectState, UserObject>{9};
    g.primary.clear();
    g.devices.clear();
    g.captures.clear();
    g.allocations.clear();
    g.kernels.clear();
    g.names.clear();
    g.costs.clear();
    g.effects = {};
    g.next_order = 0;
    g.lost = CuResult::success;
    g.rules.clear();
    g.in_use.clear();
    g.ledger = {};
    observe_births(nullptr);
    observe_launches(nullptr);
    g.random.seed(config.seed);
    g.config = config;
    restart_clock(config.time);
    configure(config);
    add_stamp_kernels(g);
}

void configure(const Config& config) {
    Gpu& g = gpu();
    const std::lock_guard lock(g.mutex);
    const Config before = g.config;
    g.config = config;
    g.config.time = before.time;
    g.config.devices = before.devices;
    g.config.driver_version = before.driver_version;
    g.config.seed = before.seed;
    g.streams.set_reuse(config.reuse_handles);
    g.events.set_reuse(config.reuse_handles);
    g.graphs.set_reuse(config.reuse_handles);
    g.nodes.set_reuse(config.reuse_handles);
    g.execs.set_reuse(config.reuse_handles);
    g.contexts.set_reuse(config.reuse_handles);
    g.modules.set_reuse(config.reuse_handles);
    g.functions.set_reuse(config.reuse_handles);
}

Config config() {
    const std::lock_guard lock(gpu().mutex);
    return gpu().config;
}

void cost(std::string_view call, std::int64_t ns) {
    const std::lock_guard lock(gpu().mutex);
    gpu().costs[std::string(call)] = ns;
}

std::int64_t now_ns() { return host_now(); }

void advance(std::int64_t ns) {
    const std::lock_guard lock(gpu().mutex);
    advance_virtual(host_now() + ns);
    settle();
}

void run_dry() {
    std::unique_lock lock(gpu().mutex);
    while (last_end() > host_now()) {
        if (gpu().config.time == Time::virtual_time) {
            advance_virtual(last_end());
        } else {
            const std::int64_t left = last_end() - host_now();
            lock.unlock();
            const timespec time{left / 1'000'000'000, left % 1'000'000'000};
            nanosleep(&time, nullptr);
            lock.lock();
        }
        settle();
    }
    settle();
}

void kernel(const std::string& name, KernelModel model) {
    const std::lock_guard lock(gpu().mutex);
    if (model.max_ns < model.min_ns) {
        model.max_ns = model.min_ns;
    }
    gpu().kernels[name] = std::move(model);
}

void make_green(Stream stream) {
    const std::lock_guard lock(gpu().mutex);
    if (const auto object = gpu().streams.find(stream)) {
        object->green = true;
    }
}

} // namespace plumb::vgpu
