// SPDX-License-Identifier: Apache-2.0
// What an empty pair reads and what stamping costs the device and the host: eager records, event nodes in the chain or
// beside it, stamp kernels on and off. Ways are taken in turn, so that a drifting clock touches all of them alike.
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include "backends/cuda/stamp_module.hpp"
#include "cudagraph/graph_device.hpp"
#include "plumb/cuda.hpp"
#include "plumb/profiler.hpp"
#include "sections.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {
namespace {

using plumb::cudagraph::RingMemory;

enum class Way { plain, event_inline, event_leaf, stamp_inline, stamp_leaf, stamp_off, stamp_mapped };
constexpr Way ways[] = {Way::plain,      Way::event_inline, Way::event_leaf,  Way::stamp_inline,
                        Way::stamp_leaf, Way::stamp_off,    Way::stamp_mapped};

const char* word(Way way) {
    constexpr const char* words[] = {"plain",
                                     "event inline",
                                     "event leaf",
                                     "stamp inline",
                                     "stamp leaf",
                                     "stamp off",
                                     "stamp inline, ring in host memory"};
    return words[static_cast<int>(way)];
}

/// A chain of kernels with a stamp after each.
struct Chain {
    std::vector<OwnedEvent> events;
    OwnedGraph graph;
    OwnedExec exec;
    std::vector<double> spans, launches;
};

/// The library's own, in device memory; and one of the same layout in mapped memory of the host, to be compared with it.
class Rings {
  public:
    Rings(Gpu& gpu, unsigned slots) : gpu_(gpu), slots_(slots), bytes_(RingMemory::values_at + std::size_t{slots} * 8) {
        const auto timeline = timeline_of(gpu.stream);
        expect(timeline.ok(), timeline.ok() ? "" : timeline.error().message);
        device_.emplace(*timeline);
        const auto ring = device_->take_ring(bytes_);
        expect(ring.ok(), ring.ok() ? "" : ring.error().message);
        ring_ = *ring;
        gpu.must(gpu.d.mem_host_alloc(&host_, bytes_, memory_host_portable | memory_host_device_map), "cuMemHostAlloc");
        gpu.must(gpu.d.mem_host_get_device_pointer(&mapped_, host_, 0), "cuMemHostGetDevicePointer");
        std::memset(host_, 0, bytes_);
    }
    ~Rings() {
        device_->return_ring(ring_);
        static_cast<void>(device_->close());
        static_cast<void>(gpu_.d.mem_free_host(host_));
    }
    Rings(const Rings&) = delete;
    Rings& operator=(const Rings&) = delete;
    [[nodiscard]] StampParameters parameters(unsigned slot, bool mapped) const {
        const DevicePointer at = mapped ? mapped_ : ring_.device;
        return {at + RingMemory::values_at, at, slot, slots_, 0, 0};
    }
    [[nodiscard]] DevicePointer values() const { return ring_.device + RingMemory::values_at; }

  private:
    Gpu& gpu_;
    unsigned slots_;
    std::size_t bytes_;
    std::optional<plumb::cudagraph::GraphDevice> device_;
    RingMemory ring_;
    void* host_ = nullptr;
    DevicePointer mapped_ = 0;
};

struct Ring {
    const StampModule* module = nullptr;
    const Rings* memory = nullptr;
    bool mapped = false;
};

GraphNode add_stamp(Gpu& gpu, Graph graph, GraphNode after, const Ring& ring, unsigned slot) {
    StampParameters values = ring.memory->parameters(slot, ring.mapped);
    void* pointers[6];
    values.fill(pointers);
    return add_kernel(gpu, graph, after, ring.module->stamp, pointers);
}

Chain build(Gpu& gpu, Way way, unsigned nodes, unsigned spin_us, const Ring& ring) {
    Chain chain{{}, make_graph(gpu), OwnedExec(gpu), {}, {}};
    GraphNode last = nullptr;
    std::vector<GraphNode> stamps;
    for (unsigned i = 0; i < nodes; ++i) {
        last = spin_us == 0 ? add_empty_kernel(gpu, chain.graph, last) : add_spin(gpu, chain.graph, last, spin_us);
        if (way == Way::event_inline || way == Way::event_leaf) {
            chain.events.push_back(make_event(gpu));
            const GraphNode stamp = add_event(gpu, chain.graph, last, chain.events.back());
            last = way == Way::event_inline ? stamp : last;
        } else if (way != Way::plain) {
            stamps.push_back(add_stamp(gpu, chain.graph, last, ring, i));
            last = way == Way::stamp_leaf ? last : stamps.back();
        }
    }
    chain.exec = instantiate(gpu, chain.graph);
    for (std::size_t i = 0; way == Way::stamp_off && i < stamps.size(); ++i) {
        gpu.must(gpu.d.graph_node_set_enabled(chain.exec, stamps[i], 0), "cuGraphNodeSetEnabled");
    }
    gpu.must(gpu.d.graph_upload(chain.exec, gpu.stream), "cuGraphUpload");
    gpu.wait();
    return chain;
}

/// A kernel in front spins for longer than the launch's call takes: the begin fires when all is submitted. Where this
/// thread lost its CPU meanwhile that is not so, and it is done again, a few times.
void replay(Gpu& gpu, Chain& chain, Event begin, Event end) {
    constexpr unsigned spin_us = 1000, tries = 8;
    double launch = 0;
    bool in_time = false;
    for (unsigned i = 0; i < tries && !in_time; ++i) {
        const std::int64_t first = host_ns();
        gpu.launch_spin(gpu.stream, spin_us);
        gpu.record(begin, gpu.stream);
        const std::int64_t before = host_ns();
        gpu.must(gpu.d.graph_launch(chain.exec, gpu.stream), "cuGraphLaunch");
        launch = static_cast<double>(host_ns() - before);
        gpu.record(end, gpu.stream);
        in_time = host_ns() - first < std::int64_t{spin_us} * 1000;
        gpu.wait();
    }
    chain.launches.push_back(launch);
    chain.spans.push_back(gpu.elapsed_ns(begin, end));
}

void compare_ways(Gpu& gpu, const ResultFile& results, unsigned nodes, unsigned spin_us, int rounds) {
    const Rings memory(gpu, nodes);
    Ring ring{nullptr, &memory};
    const auto module = stamp_module(gpu.d, gpu.context);
    if (module) {
        ring.module = *module;
    } else {
        results.absent("graph.stamp_cost", module.error().message, {{"way", "stamp inline"}, {"nodes", nodes}});
    }
    std::vector<std::pair<Way, Chain>> chains;
    for (const Way way : ways) {
        if (ring.module != nullptr || way == Way::plain || way == Way::event_inline || way == Way::event_leaf) {
            ring.mapped = way == Way::stamp_mapped;
            chains.emplace_back(way, build(gpu, way, nodes, spin_us, ring));
        }
    }
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    for (int round = 0; round < rounds; ++round) {
        for (auto& [way, chain] : chains) {
            replay(gpu, chain, begin, end);
        }
    }
    const double plain = spread_of(chains.front().second.spans).median;
    for (auto& [way, chain] : chains) {
        const Json at = {{"way", word(way)}, {"nodes", nodes}, {"kernel", spin_us == 0 ? "empty" : "5 us"}};
        const Spread span = spread_of(chain.spans);
        results.figure("graph.span", span, "ns", at);
        results.figure("graph.launch_host", spread_of(chain.launches), "ns", at);
        if (way == Way::plain) {
            results.figure("graph.kernel", plain / nodes, "ns", {{"nodes", nodes}, {"kernel", at["kernel"]}});
        } else {
            results.figure("graph.stamp_cost", (span.median - plain) / nodes, "ns", at);
        }
    }
}

/// What one pair of event nodes reads with nothing, and with an empty kernel, between them; the same for stamps.
void pairs_in_graph(Gpu& gpu, const ResultFile& results, int rounds) {
    const auto module = stamp_module(gpu.d, gpu.context);
    for (const bool kernel : {false, true}) {
        const char* name = kernel ? "graph.empty_kernel" : "graph.empty_pair";
        const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
        const OwnedGraph graph = make_graph(gpu);
        GraphNode last = add_event(gpu, graph, add_spin(gpu, graph, nullptr, 5), begin);
        last = kernel ? add_empty_kernel(gpu, graph, last) : last;
        add_event(gpu, graph, last, end);
        const OwnedExec exec = instantiate(gpu, graph);
        std::vector<double> read;
        for (int i = 0; i < rounds; ++i) {
            gpu.must(gpu.d.graph_launch(exec, gpu.stream), "cuGraphLaunch");
            gpu.wait();
            read.push_back(gpu.elapsed_ns(begin, end));
        }
        results.figure(name, spread_of(read), "ns", {{"by", "event nodes"}});
        if (!module) {
            continue;
        }
        const Rings memory(gpu, 2);
        const Ring ring{*module, &memory};
        const OwnedGraph stamped = make_graph(gpu);
        last = add_stamp(gpu, stamped, add_spin(gpu, stamped, nullptr, 5), ring, 0);
        last = kernel ? add_empty_kernel(gpu, stamped, last) : last;
        add_stamp(gpu, stamped, last, ring, 1);
        const OwnedExec stamped_exec = instantiate(gpu, stamped);
        read.clear();
        for (int i = 0; i < rounds; ++i) {
            gpu.must(gpu.d.graph_launch(stamped_exec, gpu.stream), "cuGraphLaunch");
            gpu.wait();
            const auto stamps = gpu.read<std::uint64_t>(memory.values(), 2);
            read.push_back(static_cast<double>(stamps[1] - stamps[0]));
        }
        results.figure(name, spread_of(read), "ns", {{"by", "stamp kernels"}});
    }
}

/// Eager work behind a kernel that holds the stream, so that the host is out of the picture. The launch queue holds about
/// 1,024: more would wait in the call.
void eager(Gpu& gpu, const ResultFile& results, unsigned kernels, int rounds) {
    std::vector<OwnedEvent> events;
    for (unsigned i = 0; i <= kernels; ++i) {
        events.push_back(make_event(gpu));
    }
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    std::vector<double> spans[2], pair, empty_kernel;
    for (int round = 0; round < 2 * rounds; ++round) {
        const bool recorded = round % 2 == 1;
        gpu.launch_spin(gpu.stream, kernels > 50 ? 5000 : 1000);
        gpu.record(begin, gpu.stream);
        for (unsigned i = 0; i < kernels; ++i) {
            gpu.launch_empty(gpu.stream);
            if (recorded) {
                gpu.record(events[i], gpu.stream);
            }
        }
        gpu.record(events[kernels], gpu.stream);
        gpu.record(end, gpu.stream);
        gpu.wait();
        spans[recorded ? 1 : 0].push_back(gpu.elapsed_ns(begin, end));
        pair.push_back(gpu.elapsed_ns(events[kernels], end));
        if (recorded && kernels > 1) {
            empty_kernel.push_back(gpu.elapsed_ns(events[kernels / 2 - 1], events[kernels / 2]));
        }
    }
    const Json at = {{"nodes", kernels}};
    const double plain = spread_of(spans[0]).median, with = spread_of(spans[1]).median;
    results.figure("eager.empty_pair", spread_of(pair), "ns", at);
    results.figure("eager.empty_kernel", spread_of(empty_kernel), "ns", at);
    results.figure("eager.kernel", plain / kernels, "ns", at);
    results.figure("eager.record_cost", (with - plain) / kernels, "ns", at);
}

template <class Body>
void host_cost(Gpu& gpu, const ResultFile& results, const char* call, Body body) {
    std::vector<double> each;
    for (int batch = 0; batch < 40; ++batch) {
        const std::int64_t before = host_ns();
        for (int i = 0; i < 50; ++i) {
            body();
        }
        each.push_back(static_cast<double>(host_ns() - before) / 50);
        gpu.wait();
    }
    results.figure("host.call", spread_of(each), "ns", {{"call", call}});
}

/// What a scope costs the thread that enqueues a decode step: a kernel in each, with and without another thread that launches
/// too and so holds the driver's lock. Rounds with and without scopes take turns.
void scopes_between_kernels(Gpu& gpu, const ResultFile& results) {
    constexpr int scopes = 340, rounds = 40;
    plumb::Profiler on(plumb::Config::parse("on,out=none,device.every=1"));
    if (!on.status().ok()) {
        results.absent("host.scope_with_a_kernel", on.status().error().message);
        return;
    }
    const plumb::Queue queue = plumb::cuda(gpu.stream);
    const auto step = [&](bool scoped) {
        const std::int64_t before = host_ns();
        for (int i = 0; i < scopes; ++i) {
            if (scoped) {
                PLUMB_BRICK(on, queue, plumb::Brick::rms_norm);
                gpu.launch_empty(gpu.stream);
            } else {
                gpu.launch_empty(gpu.stream);
            }
        }
        const auto took = static_cast<double>(host_ns() - before);
        gpu.wait();
        return took;
    };
    for (const bool beside : {false, true}) {
        const OwnedStream stream = make_stream(gpu);
        std::atomic<bool> stop{!beside};
        std::thread other([&] {
            const CurrentContext current(gpu.d, gpu.context);
            while (!stop) {
                static_cast<void>(
                    gpu.d.launch_kernel(gpu.kernel("check_empty"), 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr));
                static_cast<void>(gpu.d.stream_synchronize(stream));
            }
        });
        std::vector<double> each;
        for (int round = 0; round < rounds; ++round) {
            PLUMB_STEP(on, queue, plumb::Phase::decode, plumb::tokens(1));
            const double without = step(false);
            each.push_back((step(true) - without) / scopes);
        }
        stop = true;
        other.join();
        results.figure("host.scope_with_a_kernel", spread_of(each), "ns", {{"another thread launches", beside}});
    }
}

void host_costs(Gpu& gpu, const ResultFile& results) {
    const OwnedEvent event = make_event(gpu), earlier = make_event(gpu);
    gpu.record(earlier, gpu.stream);
    gpu.record(event, gpu.stream);
    gpu.wait();
    float ms = 0;
    CaptureStatus status{};
    host_cost(gpu, results, "cuEventQuery", [&] { static_cast<void>(gpu.d.event_query(event)); });
    host_cost(gpu, results, "cuEventElapsedTime", [&] { static_cast<void>(gpu.d.elapsed(&ms, earlier, event)); });
    host_cost(gpu, results, "cuStreamIsCapturing",
              [&] { static_cast<void>(gpu.d.stream_is_capturing(gpu.stream, &status)); });
    host_cost(gpu, results, "cuEventRecord", [&] { gpu.record(event, gpu.stream); });
    host_cost(gpu, results, "cuLaunchKernel", [&] { gpu.launch_empty(gpu.stream); });

    scopes_between_kernels(gpu, results);
    plumb::Profiler on(plumb::Config::parse("on,out=none,device.every=1"));
    if (!on.status().ok()) {
        results.absent("host.scope", on.status().error().message);
        return;
    }
    const plumb::Queue queue = plumb::cuda(gpu.stream);
    host_cost(gpu, results, "eager scope, timed", [&] { PLUMB_BRICK(on, queue, plumb::Brick::rms_norm); });
    on.disable();
    host_cost(gpu, results, "eager scope, off", [&] { PLUMB_BRICK(on, queue, plumb::Brick::rms_norm); });
}

} // namespace

void run_floors(const ResultFile& results, const Options& options) {
    Gpu gpu;
    gpu.launch_empty(gpu.stream);
    gpu.launch_spin(gpu.stream, 1000);
    gpu.wait();
    const int rounds = options.tiny ? 5 : 101;
    pairs_in_graph(gpu, results, rounds);
    for (const unsigned kernels : {10U, 100U, 400U}) {
        eager(gpu, results, kernels, options.tiny ? 3 : 25);
    }
    host_costs(gpu, results);
    for (const unsigned nodes : {10U, 100U, 1000U}) {
        if (options.tiny && nodes > 100) {
            continue;
        }
        compare_ways(gpu, results, nodes, 0, rounds);
        compare_ways(gpu, results, nodes, 5, options.tiny ? 5 : 51);
    }
}

} // namespace gpu_check
