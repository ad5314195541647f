// SPDX-License-Identifier: Apache-2.0
// The critical path of one step as an answer; its graph as a tree, for Graphviz, or in compressed rows. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/path_report.hpp"
#include "page/options.hpp"
#include "page/page.hpp"

namespace plumb {

inline Words words_of(NodeKind) {
    static constexpr const char* words[] = {"step", "layer", "brick", "kernel", "transfer", "task"};
    return words;
}

/// What may be asked for on the command line.
struct PathQuestion {
    std::optional<std::uint64_t> step;
    std::optional<std::uint64_t> window_us;
    bool tree = false, dot = false, csr = false;
};

[[nodiscard]] Result<PathReport> path_recording(const std::string& recording, const PathOptions& options = {});

template <class V>
void describe(V& v, PathQuestion& q) {
    v("step", q.step, "Number of the step (default: the decode step of median length)");
    v("window", q.window_us, "Transfers that come back within so many us are ping-pong (default 1000)",
      {.most = 3'600'000'000});
    v("tree", q.tree, "What contains what, with times and slack", {.excludes = "dot csr json"});
    v("dot", q.dot, "The graph for Graphviz", {.excludes = "csr json"});
    v("csr", q.csr, "The graph in compressed rows (schema plumb.path_csr/1)", {.excludes = "json", .json = true});
}

/// A node of the graph as documents have it.
struct PathNode {
    PathNode() = default;
    PathNode(const ExecGraph& graph, NodeId id);

    NodeId node = 0;
    std::string name;
    NodeKind kind = NodeKind::task;
    bool device = false;
    std::string track; // empty: the document does not say
    std::optional<std::uint32_t> layer;
    std::int64_t begin_ns = 0;
    Figure duration_ns;
    std::optional<LaunchShape> launch;
    std::optional<TransferShape> transfer;
    std::optional<TaskShape> task;
    std::optional<NodeId> parent;
};

[[nodiscard]] std::string hex_or_empty(std::uint64_t value); // 0: not known

template <class V>
void describe_shapes(V& v, const PathNode& n) {
    const LaunchShape launch = n.launch.value_or(LaunchShape{});
    const TransferShape transfer = n.transfer.value_or(TransferShape{});
    const TaskShape task = n.task.value_or(TaskShape{});
    const auto extent = [](const std::uint32_t(&of)[3]) {
        return std::vector<std::uint32_t>(of, of + 3);
    };
    v("grid", extent(launch.grid), "of a kernel: blocks in x, y, z", n.launch.has_value());
    v("block", extent(launch.block), "of a kernel: threads in x, y, z", n.launch.has_value());
    v("shared_bytes", launch.shared_bytes, "of a kernel", n.launch.has_value());
    v("code", hex_or_empty(launch.code_hash), "of a kernel whose code is known: its hash, 16 hexadecimal digits",
      launch.code_hash != 0);
    v("source", hex_or_empty(transfer.source), "of a transfer: the buffer it reads, 16 hexadecimal digits",
      transfer.source != 0);
    v("target", hex_or_empty(transfer.target), "of a transfer: the buffer it writes", transfer.target != 0);
    v("polls", task.polls, "of a task", n.task.has_value());
    v("yields", task.yields, "of a task: how often it gave its thread back", n.task.has_value());
}

template <class V>
void describe_node(V& v, const PathNode& n) {
    v("node", n.node, "its number");
    v("name", n.name, "");
    v("kind", n.kind, "");
    v("device", n.device, "it ran there");
    v("track", n.track, "where it ran", !n.track.empty());
    v("layer", n.layer, "missing: outside of layers");
    v("begin_ns", n.begin_ns, "");
    v("duration_ns", n.duration_ns, "absent where it was not timed by itself");
    describe_shapes(v, n);
}

template <class V>
void describe(V& v, const PathNode& n) {
    v.type("node", "A leaf of the graph.");
    describe_node(v, n);
}

template <class V>
void describe(V& v, const PathRow& r) {
    v.type("row", "What the leaves of one name do to the length of the step.");
    v("name", r.name, "");
    v("kind", r.kind, "");
    v("device", r.device, "");
    v("count", r.count, "leaves");
    v("on_path", r.on_path, "of those");
    v("total_ns", r.total_ns, "of all");
    v("path_ns", r.path_ns, "of those on the path");
    v("gain_ns", r.gain_ns, "the path is so much shorter if they took no time");
    v("slack_ns", r.slack_ns, "the least of them may take so much longer before the end moves");
}

template <class V>
void describe(V& v, const PingPong& p) {
    v.type("ping pong", "A buffer that went and came back.");
    v("there", p.there, "number of a node");
    v("back", p.back, "number of a node");
    v("between_ns", p.between_ns, "from the end of the one to the begin of the other");
}

/// A kernel and where its code comes from.
struct PathKernel {
    PathNode node;
    const SlowKernel* kernel = nullptr;
};
template <class V>
void describe(V& v, const PathKernel& k) {
    const SlowKernel kernel = k.kernel != nullptr ? *k.kernel : SlowKernel{};
    v.type("slow kernel", "A kernel whose time is known.");
    describe_node(v, k.node);
    v("file", kernel.file, "where it is registered", !kernel.file.empty());
    v("roofline_share", kernel.roofline_share, "of what work and peaks of the machine allow, 0 to 1");
}

template <class V>
void describe(V& v, const RecordedKernel& k) {
    v.type("recorded kernel", "A kernel that was recorded in the step.");
    v("name", k.name, "");
    v("launches", k.launches, "");
    v("code", hex_or_empty(k.code_hash), "16 hexadecimal digits", k.code_hash != 0);
    v("file", k.file, "where it is registered", !k.file.empty());
}

template <class V>
void describe(V& v, const KernelRow& r) {
    v.type("kernels", "Launches, and kernels, of one brick in one layer.");
    v("name", r.name, "the brick");
    v("layer", r.layer, "missing: outside of layers");
    v("device_scopes", r.device_scopes, "");
    v("kernels", r.kernels, "recorded in it, and those of the captured graphs that were launched");
    v("in_graphs", r.in_graphs,
      "of these, those of captured graphs; of a recording that tells nothing but scopes of a graph: its nodes of any "
      "sort");
}

[[nodiscard]] std::vector<PathNode> path_nodes(const PathReport& report);
[[nodiscard]] std::vector<PathKernel> slowest_kernels(const PathReport& report);

template <class V>
void describe(V& v, const PathReport& r) {
    v.type("path", "The critical path of one step (`plumb path`; [path.md](path.md) says what the words mean).");
    v("step", r.step, "the one that was looked at");
    v("phase", r.phase, "");
    v("candidates", r.candidates, "so many steps its length is the median of; 0: it was asked for");
    v("path_ns", r.analysis.length_ns, "length of the critical path");
    v("span_ns", r.span_ns, "from the step's begin to its last end on any track");
    v("host_ns", r.host_ns, "the step's own scope on the host");
    v("nodes", static_cast<std::uint64_t>(r.graph.size()), "of the graph");
    v("edges", static_cast<std::uint64_t>(r.graph.edges()), "of the graph");
    v("tokens", r.tokens, "of the step");
    v("launches", r.launches, "what the host launched, and the kernels inside the captured graphs among that");
    v("launches_per_token", r.launches_per_token, "");
    v("host_launches", r.host_launches,
      "kernels recorded, captured graphs, and device scopes in which no kernel was recorded");
    v("host_launches_per_token", r.host_launches_per_token, "");
    v("graph_launches", r.graph_launches, "captured graphs among `host_launches`");
    v("graph_kernels", r.graph_kernels, "kernels inside of those whose nodes are in the recording");
    v("rows", r.rows, "what to shorten, by time on the path, then by slack");
    v("path", path_nodes(r), "first to last");
    v("ping_pong", r.ping_pong, "buffers that went and came back");
    v("window_ns", r.window_ns, "within that");
    v("slowest_kernels", slowest_kernels(r), "at most 10 whose time is known; empty where no kernel is recorded");
    v("recorded_kernels", r.recorded, "each kernel in the step");
    v("kernels", r.kernels, "by brick and layer");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const PathReport&) { return "plumb.path/1"; }
[[nodiscard]] page::Page page_of(const PathReport& report, const TextOptions& options);

/// The graph in compressed rows.
struct PathRows {
    const ExecGraph* graph = nullptr;
};
struct CsrNode {
    PathNode node;
};

template <class V>
void describe(V& v, const CsrNode& n) {
    v.type("csr node", "A node of the graph.");
    v("name", n.node.name, "");
    v("kind", n.node.kind, "");
    v("begin_ns", n.node.begin_ns, "");
    v("duration_ns", n.node.duration_ns, "absent where it was not timed by itself");
    describe_shapes(v, n.node);
    v("parent", n.node.parent, "number of the node that contains it");
}

[[nodiscard]] std::vector<CsrNode> csr_nodes(const ExecGraph& graph);
[[nodiscard]] std::vector<NodeId> csr_rows(const ExecGraph& graph);

template <class V>
void describe(V& v, const PathRows& p) {
    static const ExecGraph none;
    const ExecGraph& graph = p.graph != nullptr ? *p.graph : none;
    v.type("path_csr", "The graph in compressed rows, in topological order (`plumb path --csr`). A node that contains "
                       "others and has dependencies of its own has two rows, its begin and its end.");
    v("offsets", graph.offsets(), "the edges of row r lead to `targets`[`offsets`[r] .. `offsets`[r + 1])");
    v("targets", graph.targets(), "numbers of rows");
    v("rows", csr_rows(graph), "the number of each row's node");
    v("nodes", csr_nodes(graph), "by number");
}

constexpr const char* schema_of(const PathRows&) { return "plumb.path_csr/1"; }

} // namespace plumb
