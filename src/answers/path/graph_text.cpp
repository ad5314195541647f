// SPDX-License-Identifier: Apache-2.0
// Containment as an indented tree, and the whole graph for Graphviz. No recursion: a graph may be as deep as it is large.
#include <algorithm>
#include <vector>

#include "answers/path/path.hpp"

namespace plumb {
namespace {

using namespace page;

constexpr std::size_t node_columns = 80;
constexpr std::size_t deepest_indent = 40; // levels below stand at this one

std::string us(std::int64_t ns) { return fixed(static_cast<double>(ns) / 1e3, 1); }

std::string time_of(const GraphNode& node) { return node.timed ? us(node.duration_ns) + " us" : "n/a"; }

std::vector<bool> path_marks(const ExecGraph& graph, const PathAnalysis& analysis) {
    std::vector<bool> marks(graph.size(), false);
    for (const NodeId id : analysis.path) {
        marks[id] = true;
    }
    return marks;
}

/// "grid 8x1x1 block 128x2x1 shared 4096 B": two shapes, of three numbers each.
std::string shape_text(const LaunchShape& shape) {
    const auto triple = [](const std::uint32_t(&of)[3]) {
        return std::to_string(of[0]) + "x" + std::to_string(of[1]) + "x" + std::to_string(of[2]);
    };
    std::string text = "grid " + triple(shape.grid) + " block " + triple(shape.block);
    if (shape.shared_bytes != 0) {
        text += " shared " + std::to_string(shape.shared_bytes) + " B";
    }
    return text;
}

/// In quotes as Graphviz reads them: every backslash and quote escaped, nothing else special.
std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : printable(text, node_columns)) {
        if (c == '"' || c == '\\') {
            out += '\\';
        }
        out += c;
    }
    return out + "\"";
}

std::string label_of(const ExecGraph& graph, NodeId id) {
    std::string text = graph.name_of(id) + ", " + time_of(graph[id]);
    if (const LaunchShape* shape = graph.launch_of(id); shape != nullptr) {
        text += ", " + shape_text(*shape);
    }
    return text;
}

} // namespace

std::string render_tree(const ExecGraph& graph, const PathAnalysis& analysis) {
    std::vector<NodeId> first(graph.size(), no_node), next(graph.size(), no_node), order;
    const auto earlier = [&graph](NodeId a, NodeId b) {
        return graph[a].begin_ns != graph[b].begin_ns ? graph[a].begin_ns < graph[b].begin_ns : a < b;
    };
    for (NodeId id = 0; id < graph.size(); ++id) {
        order.push_back(id);
    }
    std::sort(order.begin(), order.end(), [&](NodeId a, NodeId b) { return earlier(b, a); });
    std::vector<std::pair<NodeId, std::size_t>> open; // with its depth; the last one is printed next
    for (const NodeId id : order) {
        const NodeId parent = graph[id].parent;
        if (parent == no_node) {
            open.emplace_back(id, 0);
        } else {
            next[id] = first[parent];
            first[parent] = id;
        }
    }
    const std::vector<bool> on_path = path_marks(graph, analysis);
    std::string out;
    while (!open.empty()) {
        const auto [id, depth] = open.back();
        open.pop_back();
        if (graph[id].parent != no_node && next[id] != no_node) {
            open.emplace_back(next[id], depth);
        }
        if (first[id] != no_node) {
            open.emplace_back(first[id], depth + 1);
        }
        const GraphNode& node = graph[id];
        out.append(2 * std::min(depth, deepest_indent), ' ');
        out += on_path[id] ? "* " : "  ";
        out += printable(graph.name_of(id), node_columns);
        out += std::string("  ") + word_of(node.kind) + (node.device ? " on the device" : "") + "  " + time_of(node) +
               ", slack " + us(analysis.slack_ns[id]) + " us";
        if (const LaunchShape* shape = graph.launch_of(id); shape != nullptr) {
            out += ", " + shape_text(*shape);
        }
        out += '\n';
    }
    out += "*: on the critical path\n";
    return out;
}

std::string render_dot(const ExecGraph& graph, const PathAnalysis& analysis) {
    const std::vector<bool> on_path = path_marks(graph, analysis);
    std::string out = "digraph plumb {\n  rankdir=LR;\n  node [shape=box];\n";
    for (NodeId id = 0; id < graph.size(); ++id) {
        out += "  n" + std::to_string(id) + " [label=" + quoted(label_of(graph, id));
        out += graph[id].container ? ", style=dashed" : "";
        out += on_path[id] ? ", color=red, penwidth=2];\n" : "];\n";
    }
    for (NodeId id = 0; id < graph.size(); ++id) {
        if (graph[id].parent != no_node) {
            out += "  n" + std::to_string(graph[id].parent) + " -> n" + std::to_string(id) +
                   " [style=dotted, arrowhead=none];\n";
        }
    }
    for (std::uint32_t row = 0; row < graph.rows(); ++row) {
        for (std::uint64_t e = graph.offsets()[row]; e < graph.offsets()[row + 1]; ++e) {
            const NodeId from = graph.node_of_row(row), to = graph.node_of_row(graph.targets()[e]);
            if (graph[to].parent == from || graph[from].parent == to) {
                continue; // containment, drawn above
            }
            out += "  n" + std::to_string(from) + " -> n" + std::to_string(to);
            out += on_path[from] && on_path[to] ? " [color=red];\n" : ";\n";
        }
    }
    out += "}\n";
    return out;
}

} // namespace plumb
