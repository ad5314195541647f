// SPDX-License-Identifier: Apache-2.0
// What the library's own twins cost, with events and with stamp kernels, in graphs of each kind: the span of a replay with
// stamps less that of a plain one, and what the report then says of the same graph. And whether cuGraphClone keeps edges
// and attributes.
#include <cstring>

#include "plumb/cuda.hpp"
#include "profiled_graph.hpp"
#include "truths/truth.hpp"

namespace gpu_check {
namespace {

constexpr unsigned many_layers = 700; // more than one twin has stamps: they take turns
constexpr int attribute_cooperative = 2, attribute_cluster = 4;

class Maker {
  public:
    Maker(Gpu& gpu, unsigned kernels)
        : gpu_(gpu), count_(kernels), other_(gpu), forked_(make_event(gpu)), joined_(make_event(gpu)),
          memory_(allocate(gpu, 4096)) {
        int least = 0, greatest = 0;
        gpu.must(gpu.d.ctx_get_stream_priority_range(&least, &greatest), "cuCtxGetStreamPriorityRange");
        auto* create = entry<CuResult(Stream*, unsigned, int)>("cuStreamCreateWithPriority", 5050);
        gpu.must(create(other_.out(), stream_non_blocking, greatest), "cuStreamCreateWithPriority");
    }

    void chain(plumb::Profiler& profiler) {
        for (unsigned i = 0; i < count_; ++i) {
            kernel(profiler, gpu_.stream);
        }
    }
    void layers(plumb::Profiler& profiler, unsigned count) {
        for (unsigned layer = 0; layer < count; ++layer) {
            PLUMB_LAYER(profiler, layer);
            kernel(profiler, gpu_.stream);
        }
    }
    /// The other one runs at the highest priority.
    void branches(plumb::Profiler& profiler) {
        kernel(profiler, gpu_.stream);
        wait(forked_, gpu_.stream, other_);
        for (unsigned i = 1; i < count_; ++i) {
            kernel(profiler, i % 2 == 0 ? gpu_.stream : Stream(other_));
        }
        wait(joined_, other_, gpu_.stream);
        kernel(profiler, gpu_.stream);
    }
    void memsets(plumb::Profiler& profiler) {
        for (unsigned i = 0; i < count_; ++i) {
            kernel(profiler, gpu_.stream);
            PLUMB_BRICK(profiler, plumb::cuda(gpu_.stream), "memset");
            gpu_.must(gpu_.d.memset_d32_async(memory_, i, 256, gpu_.stream), "cuMemsetD32Async");
        }
    }
    void make_programmatic(Graph graph) {
        if (gpu_.d.graph_add_dependencies_v12030 == nullptr) {
            throw NotApplicable{"this driver knows no edge data"};
        }
        const EdgeData programmatic{edge_port_programmatic, 0, edge_type_programmatic, {}};
        const Edges edges = edges_of(gpu_, graph);
        for (std::size_t i = 0; i < edges.count(); ++i) {
            gpu_.must(gpu_.d.remove_edges(graph, &edges.from[i], &edges.to[i], nullptr, 1),
                      "cuGraphRemoveDependencies");
            gpu_.must(gpu_.d.add_edges(graph, &edges.from[i], &edges.to[i], &programmatic, 1),
                      "cuGraphAddDependencies");
        }
    }
    void make_clusters(Graph graph) {
        LaunchAttributeValue value{};
        const unsigned dimensions[3] = {2, 1, 1};
        std::memcpy(value.bytes, dimensions, sizeof dimensions);
        for (const GraphNode node : nodes_of(gpu_, graph)) {
            const CuResult set = gpu_.d.graph_kernel_node_set_attribute(node, attribute_cluster, &value);
            if (set != CuResult::success) {
                throw NotApplicable{"this device takes no clusters: " + gpu_.name_of(set)};
            }
        }
    }

  private:
    void kernel(plumb::Profiler& profiler, Stream stream) {
        PLUMB_BRICK(profiler, plumb::cuda(stream), "kernel");
        gpu_.launch(stream, gpu_.spin(5), 2, 1, DevicePointer{0});
    }
    void wait(Event event, Stream of, Stream by) {
        gpu_.record(event, of);
        gpu_.must(gpu_.d.stream_wait_event(by, event, 0), "cuStreamWaitEvent");
    }

    Gpu& gpu_;
    unsigned count_;
    OwnedStream other_;
    OwnedEvent forked_, joined_;
    OwnedMemory memory_;
};

struct Kind {
    const char* name;
    std::function<void(plumb::Profiler&)> enqueue;
    std::function<void(Graph)> edit;
    bool in_one_twin = true;
};

std::vector<Kind> kinds_of(Maker& maker) {
    const auto chain = [&maker](plumb::Profiler& profiler) {
        maker.chain(profiler);
    };
    return {
        {"chain", chain, {}},
        {"two branches", [&maker](plumb::Profiler& profiler) { maker.branches(profiler); }, {}},
        {"kernels and memsets", [&maker](plumb::Profiler& profiler) { maker.memsets(profiler); }, {}},
        {"programmatic edges", chain,
         [&maker](Graph graph) {
             maker.make_programmatic(graph);
         }},
        {"clusters of two", chain,
         [&maker](Graph graph) {
             maker.make_clusters(graph);
         }},
        {"more scopes than stamps",
         [&maker](plumb::Profiler& profiler) { maker.layers(profiler, many_layers); },
         {},
         false},
    };
}

/// Edges and attributes that the clone of a graph does not have as its original has them.
void compare_clone(Gpu& gpu, const ResultFile& results, Graph graph, const Json& at) {
    OwnedGraph clone(gpu);
    gpu.must(gpu.d.graph_clone(clone.out(), graph), "cuGraphClone");
    const auto copy_of = [&](GraphNode node) {
        GraphNode copy = nullptr;
        gpu.must(gpu.d.graph_node_find_in_clone(&copy, node, clone), "cuGraphNodeFindInClone");
        return copy;
    };
    const Edges edges = edges_of(gpu, graph), cloned = edges_of(gpu, clone);
    std::size_t lost = edges.count();
    for (std::size_t i = 0; i < edges.count(); ++i) {
        for (std::size_t j = 0; j < cloned.count(); ++j) {
            if (copy_of(edges.from[i]) == cloned.from[j] && copy_of(edges.to[i]) == cloned.to[j] &&
                std::memcmp(&edges.data[i], &cloned.data[j], sizeof(EdgeData)) == 0) {
                --lost;
                break;
            }
        }
    }
    std::size_t asked = 0, different = 0;
    for (const GraphNode node : nodes_of(gpu, graph)) {
        for (const int attribute :
             {attribute_cooperative, attribute_cluster, attribute_programmatic_serialization, attribute_priority}) {
            LaunchAttributeValue value{}, copied{};
            if (type_of(gpu, node) == NodeType::kernel &&
                gpu.d.graph_kernel_node_get_attribute(node, attribute, &value) == CuResult::success) {
                ++asked;
                const CuResult got = gpu.d.graph_kernel_node_get_attribute(copy_of(node), attribute, &copied);
                different += got != CuResult::success || std::memcmp(&value, &copied, sizeof value) != 0 ? 1 : 0;
            }
        }
    }
    results.figure("clone.edges_lost", static_cast<double>(lost), "1", at);
    results.figure("clone.attributes_asked", static_cast<double>(asked), "1", at);
    results.figure("clone.attributes_lost", static_cast<double>(different), "1", at);
}

double span_of(Gpu& gpu, Event begin, Event end, const std::function<void()>& launch) {
    gpu.launch_spin(gpu.stream, 1000); // longer than the launch's call
    gpu.record(begin, gpu.stream);
    launch();
    gpu.record(end, gpu.stream);
    gpu.wait();
    return gpu.elapsed_ns(begin, end);
}

/// Plain replays between sampled ones, by events of our own: a check of the report's closure that owes it nothing.
void spans(Gpu& gpu, const ResultFile& results, const Options& options, const Kind& kind, const std::string& stamps,
           Json at) {
    const auto profiler = profiler_of(options, "twin-spans", "graph.every=1,graph.stamps=" + stamps);
    ProfiledGraph graph(
        gpu, *profiler, 1, [&] { kind.enqueue(*profiler); }, kind.edit);
    if (stamps == "events") {
        compare_clone(gpu, results, graph.graph(), {{"graph", kind.name}});
    }
    const OwnedEvent begin = make_event(gpu), end = make_event(gpu);
    std::vector<double> plain, sampled;
    const int warm = 20, rounds = options.tiny ? 30 : 200;
    for (int i = 0; i < warm + rounds; ++i) {
        const double with = span_of(gpu, begin, end, [&] { static_cast<void>(graph.launch()); });
        const double without =
            span_of(gpu, begin, end, [&] { gpu.must(gpu.d.graph_launch(graph.plain(), gpu.stream), "cuGraphLaunch"); });
        if (i >= warm) {
            sampled.push_back(with), plain.push_back(without);
        }
        if (i < warm) {
            gpu.time.sleep_ns(2'000'000); // the twin is built meanwhile
        }
    }
    const plumb::Report report = report_of(*profiler);
    if (report.graphs.empty() || report.graphs[0].sampled_replays == 0) {
        results.absent("twin.cost_of_a_site",
                       report.graphs.empty() ? "the report has no graph" : report.graphs[0].source, at);
        return;
    }
    const Spread with = spread_of(sampled), without = spread_of(plain);
    results.figure("twin.span", with, "ns", at);
    results.figure("twin.plain_span", without, "ns", at);
    results.figure("twin.cost_of_a_site",
                   (with.median - without.median) / static_cast<double>(report.graphs[0].sites_timed), "ns", at);
}

void reports(Gpu& gpu, const ResultFile& results, const Options& options, const Kind& kind, const std::string& stamps,
             const Json& at) {
    const auto profiler = profiler_of(options, "twin-reports", "graph.every=4,graph.stamps=" + stamps);
    ProfiledGraph graph(
        gpu, *profiler, 1, [&] { kind.enqueue(*profiler); }, kind.edit);
    static_cast<void>(graph.launch_until_timed(options.tiny ? 4 : 8));
    for (int i = 0; i < (options.tiny ? 100 : 400); ++i) {
        graph.launch_and_wait();
    }
    const plumb::Report report = report_of(*profiler);
    for (const plumb::GraphSummary& summary : report.graphs) {
        results.figure("twin.sampled", static_cast<double>(summary.sampled_replays), "1", at);
        results.figure("twin.sites", static_cast<double>(summary.sites), "1", at);
        results.figure("twin.sites_timed", static_cast<double>(summary.sites_timed), "1", at);
        put(results, "twin.sites_sum", summary.sites_ns, "ns", at);
        put(results, "twin.report_plain_span", summary.plain_span_ns, "ns", at);
        put(results, "twin.closure", summary.closure, "%", at, 100);
        results.note(std::string(kind.name) + ", " + stamps + ": " + summary.source);
    }
}

} // namespace

void run_twins(const ResultFile& results, const Options& options) {
    Gpu gpu;
    Maker maker(gpu, options.tiny ? 10 : 40);
    for (const Kind& kind : kinds_of(maker)) {
        for (const std::string stamps : {"events", "kernels"}) {
            const Json at = {{"graph", kind.name}, {"stamps", stamps}};
            try {
                if (kind.in_one_twin) {
                    spans(gpu, results, options, kind, stamps, at);
                }
                reports(gpu, results, options, kind, stamps, at);
            } catch (const NotApplicable& reason) {
                results.absent("twin.cost_of_a_site", reason.reason, at);
            }
        }
    }
}

} // namespace gpu_check
