// SPDX-License-Identifier: Apache-2.0
// The execution graph: what ran, what contains it, what it had to wait for; the critical path, and how much each part could
// take longer before the end moves. Built by hand with ExecGraphBuilder or from one step of a recording (ask("path", …)).
// Values are owned by the caller; a finished graph is constant and may be shared between threads, a builder has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/node.hpp"
#include "plumb/result.hpp"

namespace plumb {

enum class NodeKind : std::uint8_t { step, layer, brick, kernel, transfer, task };

/// Nodes are numbered from 0 in the order they were added.
using NodeId = std::uint32_t;
inline constexpr NodeId no_node = 0xffffffff;

/// How a kernel was launched, what it is made of, and how much it did. NaN: not known.
struct LaunchShape {
    std::uint32_t grid[3] = {1, 1, 1};
    std::uint32_t block[3] = {1, 1, 1};
    std::uint32_t shared_bytes = 0;
    std::uint64_t code_hash = 0; // code_hash() of its PTX or binary; 0: not known
    double bytes = std::numeric_limits<double>::quiet_NaN();
    double flops = std::numeric_limits<double>::quiet_NaN();
};

/// How often an asynchronous task was polled, and gave its thread back.
struct TaskShape {
    std::uint64_t polls = 0;
    std::uint64_t yields = 0;
};

struct TransferShape {
    std::uint64_t source = 0; // the caller's number of a buffer; 0: not known
    std::uint64_t target = 0;
    std::uint64_t bytes = 0; // 0: not known
    TransferDirection direction = TransferDirection::host_to_device;
};

/// Plain data of one node. Only leaves have weight on a path: the time of a node that contains others is that of those.
struct GraphNode {
    std::int64_t begin_ns = 0;
    std::int64_t duration_ns = 0;
    std::uint32_t name = 0;             // index of ExecGraphBuilder::name
    NodeId parent = no_node;            // the node that contains it: no dependency
    std::uint32_t track = 0;            // where it ran
    std::optional<std::uint32_t> layer; // absent: outside of layers
    std::uint32_t shape = 0xffffffff;   // of kernels, transfers and tasks
    NodeKind kind = NodeKind::task;
    bool device = false;
    bool timed = true;      // false: its time is not known, duration_ns is 0 and counts for nothing
    bool container = false; // set by build(): it contains others
};

class ExecGraph;

/// Collects nodes and edges in any order; build() checks them.
class PLUMB_API ExecGraphBuilder {
  public:
    /// Number of a name; the same text gives the same number.
    std::uint32_t name(std::string_view text);
    NodeId add(const GraphNode& node);
    NodeId add_kernel(GraphNode node, const LaunchShape& shape);
    NodeId add_transfer(GraphNode node, const TransferShape& shape);
    NodeId add_task(GraphNode node, const TaskShape& shape);
    /// `inner` lies inside `outer`.
    void contain(NodeId outer, NodeId inner);
    /// `later` could not begin before `earlier` had ended. Of a node that contains others: before all of it had ended, or
    /// before any of it could begin.
    void depend(NodeId earlier, NodeId later);
    void reserve(std::size_t nodes, std::size_t edges);
    [[nodiscard]] std::size_t nodes() const noexcept { return nodes_.size(); }

    /// O(V+E). An error names what is wrong: an id that was never added, a negative duration, more than 2^32-2 nodes,
    /// or a cycle with its nodes. The builder is empty afterwards.
    [[nodiscard]] Result<ExecGraph> build();

  private:
    std::vector<GraphNode> nodes_;
    std::vector<std::pair<NodeId, NodeId>> edges_;
    std::vector<std::pair<NodeId, NodeId>> contained_; // outer, inner
    std::vector<std::string> names_;
    std::vector<std::uint32_t> name_slots_; // open addressing by hash; 0: free, else index + 1
    std::vector<LaunchShape> launches_;
    std::vector<TransferShape> transfers_;
    std::vector<TaskShape> tasks_;
    bool overflow_ = false;
};

/// What must not be delayed. Slack of a node that contains others: the least of what it contains.
struct PathAnalysis {
    std::int64_t length_ns = 0;
    std::vector<NodeId> path;           // leaves whose time is known, first to last
    std::vector<std::int64_t> slack_ns; // by node
};

/// A buffer that went and came back.
struct PingPong {
    NodeId there = no_node;
    NodeId back = no_node;
    std::int64_t between_ns = 0; // from the end of the one to the begin of the other
};

class PLUMB_API ExecGraph {
  public:
    [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
    /// Dependencies; containment is none.
    [[nodiscard]] std::size_t edges() const noexcept { return targets_.size(); }
    [[nodiscard]] const GraphNode& operator[](NodeId id) const { return nodes_[id]; }
    [[nodiscard]] const std::vector<GraphNode>& all() const noexcept { return nodes_; }
    [[nodiscard]] const std::string& name_of(NodeId id) const { return names_[nodes_[id].name]; }
    [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
    /// Null for a node that has none.
    [[nodiscard]] const LaunchShape* launch_of(NodeId id) const;
    [[nodiscard]] const TransferShape* transfer_of(NodeId id) const;
    [[nodiscard]] const TaskShape* task_of(NodeId id) const;

    /// Compressed rows, one for each vertex in topological order: the edges of row r lead to the rows
    /// targets()[offsets()[r] .. offsets()[r + 1]). Each node has a row; one that contains others and has dependencies of its
    /// own begins at its first row and ends at a second.
    [[nodiscard]] const std::vector<std::uint64_t>& offsets() const noexcept { return offsets_; }
    [[nodiscard]] const std::vector<std::uint32_t>& targets() const noexcept { return targets_; }
    [[nodiscard]] std::size_t rows() const noexcept { return offsets_.empty() ? 0 : offsets_.size() - 1; }
    [[nodiscard]] NodeId node_of_row(std::uint32_t row) const { return node_of(order_.empty() ? row : order_[row]); }

    /// O(V+E).
    [[nodiscard]] PathAnalysis analyse() const;
    /// Length of the critical path if every leaf with the name, kind and side of this node took no time; O(V+E).
    [[nodiscard]] std::int64_t length_without(const GraphNode& like) const;
    /// The same without these leaves, all together.
    [[nodiscard]] std::int64_t length_without_all(const std::vector<NodeId>& leaves) const;
    /// Transfers whose data came back within `window_ns`: buffers swapped where both are known, else opposite directions and
    /// as many bytes. In the order of their way back.
    [[nodiscard]] std::vector<PingPong> ping_pong(std::int64_t window_ns) const;
    /// At most `most` kernels whose time is known, slowest first; nothing else is a kernel.
    [[nodiscard]] std::vector<NodeId> slowest_kernels(std::size_t most) const;
    /// Nodes, those that contain them before them.
    [[nodiscard]] std::vector<NodeId> outer_first() const;

  private:
    friend class GraphAssembly;
    struct Passes;

    std::vector<GraphNode> nodes_;
    std::vector<std::string> names_;
    std::vector<LaunchShape> launches_;
    std::vector<TransferShape> transfers_;
    std::vector<TaskShape> tasks_;
    // Vertices are nodes and, behind them, the ends of nodes that contain others.
    [[nodiscard]] NodeId node_of(std::uint32_t vertex) const {
        return vertex < nodes_.size() ? vertex : ends_[vertex - nodes_.size()];
    }

    std::vector<std::uint64_t> offsets_;
    std::vector<std::uint32_t> targets_;
    std::vector<std::int64_t> weights_; // by row; negative: it contains others and has none
    std::vector<std::uint32_t> order_;  // vertex of each row; empty: row r is vertex r
    std::vector<NodeId> ends_;          // nodes of the vertices that are ends
    bool outer_first_ = true;           // the nodes' own numbers have those that contain others before them
    bool containment_ = false;          // some node contains others
};

/// Containment as an indented tree; the graph for Graphviz; in compressed rows as JSON (schema plumb.path_csr/1).
PLUMB_API std::string render_tree(const ExecGraph& graph, const PathAnalysis& analysis);
PLUMB_API std::string render_dot(const ExecGraph& graph, const PathAnalysis& analysis);
PLUMB_API std::string render_csr(const ExecGraph& graph);

} // namespace plumb
