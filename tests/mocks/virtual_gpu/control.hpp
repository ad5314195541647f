// SPDX-License-Identifier: Apache-2.0
// The other side of the virtual GPU: what a test sets, advances, breaks and reads. Link plumb::virtual_gpu and include
// this; the stand-in libcuda.so.1 that your code then finds is the same object. Owned by the process; any thread.
// Times are true nanoseconds on the host's clock, also for what the device did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "backends/cuda/driver_types.hpp"
#include "plumb/clock.hpp"

#define PLUMB_VGPU_API __attribute__((visibility("default")))

namespace plumb::vgpu {

using namespace plumb::backends::cuda; // the driver's types
using plumb::backends::cuda::Context;  // not those of plumb/backend.hpp, record.hpp and execgraph.hpp
using plumb::backends::cuda::Device;
using plumb::backends::cuda::GraphNode;

enum class Time {
    virtual_time, // host time moves only by call costs, waits and advance()
    real_time,    // CLOCK_MONOTONIC: costs are spun, waits wait
};

/// What cuEventElapsedTime sees of an event that an enqueued replay will record again.
enum class Overwrite {
    at_enqueue,   // not ready until the newest record executed
    at_execution, // the old value until then: a pair may be mixed
};

struct Config {
    Time time = Time::virtual_time;
    int devices = 1;
    int driver_version = 13000;
    std::uint64_t seed = 1;

    // The device's clock: device_ns = (true_ns + offset) * (1 + ppm / 1e6). Device k has k * offset_step more.
    std::int64_t clock_offset_ns = 7'000'000'000;
    std::int64_t clock_offset_step_ns = 1'000'000'000;
    double clock_drift_ppm = 0.0;
    unsigned event_tick_ns = 32;
    unsigned globaltimer_tick_ns = 32;
    std::int64_t globaltimer_change_ns = 0; // so long after the reset (0: never) %globaltimer ticks differently:
    unsigned globaltimer_tick_later_ns = 1'024;

    // What a call costs the host; cost() sets single ones.
    std::int64_t call_ns = 200;
    std::int64_t launch_ns = 2'000;       // kernel, copy, memset, host function
    std::int64_t graph_launch_ns = 5'000; // and per node:
    std::int64_t graph_launch_node_ns = 10;
    std::int64_t instantiate_ns = 20'000; // and per node:
    std::int64_t instantiate_node_ns = 500;
    std::int64_t upload_node_ns = 50; // of the host, at the first upload, or else at the first launch
    std::int64_t wake_ns = 5'000;     // from the end of what is waited for to the return of the waiting call

    // What things cost the device.
    std::int64_t submit_ns = 3'000;     // from the call's return to the start, on an idle stream
    std::int64_t gap_ns = 500;          // between two pieces of work of one stream
    std::int64_t event_ns = 0;          // an event record in a stream
    std::int64_t kernel_min_ns = 5'000; // kernels without a duration of their own: seeded random between these
    std::int64_t kernel_max_ns = 5'000; //   two, drawn at each execution
    std::int64_t copy_ns = 1'000;       // a copy or memset, and
    std::int64_t copy_bytes_per_us = 20'000;
    std::int64_t host_function_ns = 2'000;
    std::int64_t graph_start_ns = 1'000; // before the first node of a replay
    std::int64_t graph_gap_ns = 1'000;   // before a node of a graph that waits for another
    std::int64_t event_node_ns = 800;    // an event record node
    std::int64_t stamp_node_ns = 1'700;  // a kernel named plumb_stamp…, its gap included
    std::int64_t stamp_read_ns = 0;      // from a stamp's start to the moment it reads the timer
    std::int64_t disabled_node_ns = 0;   // a node switched off by cuGraphNodeSetEnabled

    // What a device may do beside; off.
    std::int64_t mapped_access_ns = 0;      // a kernel's way to mapped host memory: per parameter that points there
    unsigned sm_slots = 0;                  // blocks that run at once; a kernel that finds no place waits. 0: no bound
    double idle_slowdown = 1;               // kernels take so many times as long while the clocks are idle: after
    std::int64_t idle_after_ns = 1'000'000; //   so long without a kernel, until
    std::int64_t boost_after_ns = 100'000;  //   so long after the first one
    std::int64_t graph_start_node_ns = 0;   // a replay starts so much later for each of its nodes
    std::int64_t branch_launch_node_ns = 0; // a launch takes the host so much longer per node, unless all are in a line
    std::int64_t stamp_before_work_ns = 0;  // a piece of work starts so much later behind a stamp or event node
    std::int64_t memset_apart_ns = 0;      // a memset or copy next to a stamp or event node leaves the kernels' channel
    bool programmatic_holds_slots = false; // blocks launched early by a programmatic edge keep stamps from the device
    bool streams_alias = false;        // streams of one priority share a channel: work waits for earlier work of any
    bool mig = false;                  // the devices are instances, and named so
    bool loading_synchronises = false; // module loads, first uses of kernels and allocations wait for their context
    std::int64_t programmatic_overlap_ns = 500; // how much of a kernel its programmatic successor overlaps

    // Limits.
    unsigned launch_queue_depth = 1'024;                   // per stream: launches beyond it wait
    std::size_t exec_limit = static_cast<std::size_t>(-1); // instantiation fails with out of memory beyond it
    std::size_t memory_bytes = std::size_t{8} << 30;       // of a device
    std::size_t node_bytes = 400;                          // of device memory, per node of an executable

    Overwrite overwrite = Overwrite::at_enqueue;
    bool reuse_handles = true;               // the last destroyed handle is the next one given out
    bool shuffle_nodes = true;               // cuGraphGetNodes and cuGraphGetEdges answer in a seeded order
    std::size_t keep_operations = 4'000'000; // of the ledger, then the oldest go
};

/// Forgets everything: handles, memory, failures, kernels, ledger. No other thread may be in a driver call.
PLUMB_VGPU_API void reset(const Config& config = {});
/// Changes settings of the running GPU (not time, devices, driver_version, seed).
PLUMB_VGPU_API void configure(const Config& config);
PLUMB_VGPU_API Config config();
/// What one call of this entry point costs the host from now on: cost("cuLaunchKernel", 3000).
PLUMB_VGPU_API void cost(std::string_view call, std::int64_t ns);

// --- Time ---------------------------------------------------------------------------------------------------------
PLUMB_VGPU_API std::int64_t now_ns();
/// Virtual time only: the host does something else for so long; the device goes on.
PLUMB_VGPU_API void advance(std::int64_t ns);
/// Goes on (in real time: waits) until every stream is empty, without being a synchronising call.
PLUMB_VGPU_API void run_dry();
/// For Config::clock of a Profiler; ticks are nanoseconds. Lives as long as the process.
PLUMB_VGPU_API HostClock& host_clock();
/// What the device's clock shows at a true time, before it is cut to ticks.
PLUMB_VGPU_API double device_ns(std::int64_t true_ns, int device = 0);
/// As an event stamps it, and as %globaltimer reads.
PLUMB_VGPU_API std::uint64_t event_stamp_ns(std::int64_t true_ns, int device = 0);
PLUMB_VGPU_API std::uint64_t globaltimer_ns(std::int64_t true_ns, int device = 0);

/// From now on the stream is one of a green context: cuStreamGetCtx refuses it, version 12.5 of it gives the primary context.
PLUMB_VGPU_API void make_green(Stream stream);

// --- Kernels ------------------------------------------------------------------------------------------------------
/// One execution of a kernel, given to its host function at the moment when it ends.
struct KernelRun {
    const std::string& name;
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
    const std::vector<const void*>& params;      // one per parameter
    const std::vector<std::size_t>& param_bytes; // the size of each
    std::int64_t start_ns, end_ns;               // true
    std::uint64_t globaltimer;                   // read stamp_read_ns after the start
    int device;
    template <class T>
    const T& param(std::size_t index) const {
        return *static_cast<const T*>(params[index]);
    }
};
using KernelFunction = std::function<void(const KernelRun&)>;

struct KernelModel {
    std::vector<std::size_t> param_bytes; // empty: what the module's PTX says, else none
    std::int64_t min_ns = -1;             // -1: Config::kernel_min_ns
    std::int64_t max_ns = -1;
    KernelFunction function; // runs without the driver: it must not call it
};
/// What a kernel of this name does, enqueued from now on, in any module. plumb_stamp and plumb_stamp_advance are there after a
/// reset(): they do what their PTX says.
PLUMB_VGPU_API void kernel(const std::string& name, KernelModel model);

/// Where a device address (or mapped host address) lies on the host; null if nothing of `bytes` is there.
PLUMB_VGPU_API void* memory(DevicePointer address, std::size_t bytes = 1);
template <class T>
T* at(DevicePointer address, std::size_t count = 1) {
    return static_cast<T*>(memory(address, sizeof(T) * count));
}

/// Adds a node of a kind that has no entry point here (conditional, semaphores): it takes no time and does nothing.
PLUMB_VGPU_API GraphNode add_bare_node(Graph graph, NodeType type, const std::vector<GraphNode>& after = {});

// --- Failures -----------------------------------------------------------------------------------------------------
/// The nth call (1: the next) of an entry point, counted from now over all threads, does nothing and returns `error`;
/// so do the times - 1 calls after it. Calls that release something release it all the same. "*" is any call.
PLUMB_VGPU_API void fail(std::string_view call, CuResult error, std::uint64_t nth = 1, std::uint64_t times = 1);
/// The nth call costs the host `ns` more.
PLUMB_VGPU_API void slow(std::string_view call, std::int64_t ns, std::uint64_t nth = 1, std::uint64_t times = 1);
/// The device is lost: every later call (bar error names) returns `error`, until reset().
PLUMB_VGPU_API void lose_device(CuResult error = CuResult::launch_failed);
/// The nth call of an entry point loses the device and returns `error`.
PLUMB_VGPU_API void lose_device_at(std::string_view call, CuResult error, std::uint64_t nth = 1);
/// Forgets planned failures, slow calls and holds.
PLUMB_VGPU_API void clear_failures();
/// True once every planned failure has struck.
PLUMB_VGPU_API bool all_failures_struck();

/// The nth call of an entry point stops inside the driver, in real time, until release() (or the Hold's end): for tests
/// that need two threads in two calls at once.
class PLUMB_VGPU_API Hold {
  public:
    explicit Hold(std::string_view call, std::uint64_t nth = 1);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    void wait_until_inside(); // some thread is held
    void release();

  private:
    std::shared_ptr<struct HoldState> state_;
};

// --- Ledger -------------------------------------------------------------------------------------------------------
enum class OpKind { kernel, copy, memset, host_function, event_record, event_node, graph };

struct Operation {
    OpKind kind = OpKind::kernel;
    const char* name = ""; // of a kernel; "copy_h2d", "graph", …; lives until reset()
    int device = 0;
    std::uint64_t stream_id = 0; // as cuStreamGetId
    std::uint64_t graph_id = 0;  // of the executable, 0: eager; given out from 1, never again
    std::uint32_t replay = 0;    // of the executable, from 1
    std::uint32_t launch = 0;    // of all launches, from 1; the nodes of a replay share it
    GraphNode node = nullptr;    // of the graph it was instantiated from
    std::uint64_t node_id = 0;   // of the executable's own copy of that node
    unsigned grid[3] = {}, block[3] = {};
    int priority = 0; // at which a kernel ran; lower comes first
    Event event = nullptr;
    std::int64_t submit_ns = 0; // host: when the call began
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
};
/// In the order of enqueueing; a replay's nodes follow its "graph" row, in a topological order.
PLUMB_VGPU_API std::vector<Operation> operations();
PLUMB_VGPU_API std::size_t operation_count();

struct Invalidation {
    std::uint64_t capture_id = 0;
    std::string call;       // that did it
    std::thread::id thread; // that called
    std::thread::id owner;  // that began the capture
};
PLUMB_VGPU_API std::vector<Invalidation> invalidations();

struct Synchronisation {
    std::string call;
    std::thread::id thread;
    bool implicit = false; // a free, an unload: waits without saying so
    std::int64_t waited_ns = 0;
};
PLUMB_VGPU_API std::vector<Synchronisation> synchronisations();
PLUMB_VGPU_API std::uint64_t synchronising_calls(); // explicit ones, all threads
PLUMB_VGPU_API std::uint64_t synchronising_calls(std::thread::id thread);

PLUMB_VGPU_API std::uint64_t calls(std::string_view call); // "cuGraphLaunch"; "*": all
PLUMB_VGPU_API std::uint64_t calls(std::string_view call, std::thread::id thread);
/// Entry points called so far, sorted.
PLUMB_VGPU_API std::vector<std::string> called();

/// What is alive now, by kind. Primary contexts count while retained.
struct Alive {
    std::size_t contexts = 0, streams = 0, events = 0, modules = 0, graphs = 0, execs = 0;
    std::size_t device_allocations = 0, host_allocations = 0;
    std::size_t captures = 0;
    std::size_t user_objects = 0;
    [[nodiscard]] std::size_t total() const {
        return contexts + streams + events + modules + graphs + execs + device_allocations + host_allocations +
               captures + user_objects;
    }
};
PLUMB_VGPU_API Alive alive();
/// "2 events, 1 graph"; "" when nothing is left.
PLUMB_VGPU_API std::string leaks();

/// Misuse that a real driver would answer with a crash or wrong data: use after destroy, one graph object in two threads
/// at once, a stale frontier array, an event destroyed under a replay, a driver call from a host function. One sentence each.
PLUMB_VGPU_API std::vector<std::string> errors();
/// Launches that found the queue full, and how long the host waited for them.
struct Blocked {
    std::uint64_t launches = 0;
    std::int64_t waited_ns = 0;
};
PLUMB_VGPU_API Blocked blocked();
/// Executables destroyed while a launch of theirs was in flight.
PLUMB_VGPU_API std::uint64_t destroyed_in_flight();

} // namespace plumb::vgpu
