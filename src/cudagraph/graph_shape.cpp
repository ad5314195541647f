// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/graph_shape.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace plumb::cudagraph {

using namespace backends::cuda;

namespace {

const char* const advice = "the graph is launched plainly and nothing inside it is timed";

using Counts = std::map<std::string, std::uint64_t>;

std::vector<recording::NamedCount> list_of(const Counts& counts) { return {counts.begin(), counts.end()}; }

class ShapeReader {
  public:
    explicit ShapeReader(const Driver& driver) : driver_(driver) {}

    Status read(Graph graph, GraphShape& shape) {
        if (Status status = nodes_of(graph, shape.nodes); !status) {
            return status;
        }
        shape_ = &shape;
        shape.types.resize(shape.nodes.size());
        shape.kind_of.resize(shape.nodes.size());
        shape.name_of.resize(shape.nodes.size());
        shape.index_of.reserve(shape.nodes.size());
        for (std::uint32_t i = 0; i < shape.nodes.size(); ++i) {
            shape.index_of.emplace(shape.nodes[i], i);
            if (Status status = look_at(shape.nodes[i], i, 0); !status) {
                return status;
            }
            const recording::CapturedKind& kind = shape.kinds[shape.kind_of[i]];
            shape.types[i] = static_cast<NodeType>(kind.type);
            const auto [known, is_new] = name_ids_.emplace(kind.name, static_cast<std::uint32_t>(shape.names.size()));
            if (is_new) {
                shape.names.push_back(kind.name);
            }
            shape.name_of[i] = known->second;
        }
        shape.nodes_by_type = list_of(types_);
        shape.kernels = list_of(kernels_);
        shape.not_cloneable = memory_        ? "n/a (memory nodes)"
                              : conditional_ ? "n/a (conditional nodes)"
                              : updatable_   ? "n/a (device-updatable nodes)"
                                             : "";
        return edges_of(graph, shape.index_of, shape.edges);
    }

  private:
    Status failed(CuResult result, const char* call) const { return error_of(driver_, result, call, advice); }

    Status nodes_of(Graph graph, std::vector<GraphNode>& nodes) {
        std::size_t count = 0;
        if (const CuResult result = driver_.graph_get_nodes(graph, nullptr, &count); result != CuResult::success) {
            return failed(result, "cuGraphGetNodes");
        }
        nodes.resize(count);
        if (count == 0) {
            return {};
        }
        const CuResult result = driver_.graph_get_nodes(graph, nodes.data(), &count);
        nodes.resize(std::min(nodes.size(), count));
        return result == CuResult::success ? Status() : failed(result, "cuGraphGetNodes");
    }

    /// `number`: of the node, among those of child graphs too.
    Status look_at(GraphNode node, std::uint32_t number, unsigned depth) {
        NodeType type{};
        if (const CuResult result = driver_.graph_node_get_type(node, &type); result != CuResult::success) {
            return failed(result, "cuGraphNodeGetType");
        }
        ++types_[word_of(type)];
        memory_ |= type == NodeType::mem_alloc || type == NodeType::mem_free;
        conditional_ |= type == NodeType::conditional;
        recording::CapturedKind kind;
        kind.type = static_cast<std::uint32_t>(type);
        kind.name = word_of(type);
        if (type == NodeType::kernel) {
            look_at_kernel(node, kind);
            updatable_ |= is_updatable(node);
            ++kernels_[kind.name];
        }
        shape_->kind_of[number] = number_of(kind);
        return type == NodeType::graph && depth < deepest_child ? look_inside(node, number, depth + 1) : Status();
    }

    std::uint32_t number_of(const recording::CapturedKind& kind) {
        const auto [known, is_new] =
            kind_ids_.emplace(std::tuple(kind.type, kind.name, kind.shaped, kind.grid[0], kind.grid[1], kind.grid[2],
                                         kind.block[0], kind.block[1], kind.block[2], kind.shared_bytes),
                              static_cast<std::uint32_t>(shape_->kinds.size()));
        if (is_new) {
            shape_->kinds.push_back(kind);
        }
        return known->second;
    }

    Status look_inside(GraphNode parent, std::uint32_t parent_number, unsigned depth) {
        Graph child = nullptr;
        if (const CuResult result = driver_.graph_child_node_get_graph(parent, &child); result != CuResult::success) {
            return failed(result, "cuGraphChildGraphNodeGetGraph");
        }
        std::vector<GraphNode> nodes;
        if (Status status = nodes_of(child, nodes); !status) {
            return status;
        }
        std::unordered_map<GraphNode, std::uint32_t> numbers;
        for (const GraphNode node : nodes) {
            const auto number = static_cast<std::uint32_t>(shape_->kind_of.size());
            numbers.emplace(node, number);
            shape_->kind_of.push_back(0);
            shape_->inner_parent_of.push_back(parent_number);
            if (Status status = look_at(node, number, depth); !status) {
                return status;
            }
        }
        return edges_of(child, numbers, shape_->inner_edges);
    }

    /// Kernels may change its parameters, in the one executable that there may be.
    bool is_updatable(GraphNode node) {
        LaunchAttributeValue value{};
        return driver_.graph_kernel_node_get_attribute != nullptr &&
               driver_.graph_kernel_node_get_attribute(node, attribute_device_updatable, &value) == CuResult::success &&
               value.device_updatable.updatable != 0; // before 12.4 drivers know no such attribute
    }

    /// A kernel without a name is still a kernel: never an error.
    void look_at_kernel(GraphNode node, recording::CapturedKind& kind) {
        KernelNodeParams params{};
        if (const CuResult asked = driver_.kernel_params(node, &params); asked != CuResult::success) {
            kind.name = asked == CuResult::not_supported
                            ? std::string("kernel (") + driver_.vendor->api + " tells no names)"
                            : "kernel (parameters unreadable)";
            return;
        }
        kind.name = name_of(params);
        shape_->context = shape_->context != nullptr ? shape_->context : params.ctx;
        kind.shaped = true;
        kind.grid[0] = params.grid_x;
        kind.grid[1] = params.grid_y;
        kind.grid[2] = params.grid_z;
        kind.block[0] = params.block_x;
        kind.block[1] = params.block_y;
        kind.block[2] = params.block_z;
        kind.shared_bytes = params.shared_bytes;
    }

    std::string name_of(const KernelNodeParams& params) {
        const void* const function = params.func != nullptr ? static_cast<const void*>(params.func) : params.kern;
        const auto known = functions_.find(function);
        if (known != functions_.end()) {
            return known->second;
        }
        const char* name = nullptr;
        if (params.func != nullptr && driver_.func_get_name != nullptr) {
            static_cast<void>(driver_.func_get_name(&name, params.func));
        }
        if (name == nullptr && params.kern != nullptr && driver_.kernel_get_name != nullptr) {
            static_cast<void>(driver_.kernel_get_name(&name, params.kern));
        }
        std::string text = name != nullptr ? name : "kernel (this driver tells no names; 12.3 does)";
        functions_.emplace(function, text);
        return text;
    }

    Status edges_of(Graph graph, const std::unordered_map<GraphNode, std::uint32_t>& numbers,
                    std::vector<ShapeEdge>& edges) {
        std::size_t count = 0;
        if (const CuResult result = driver_.edges_of(graph, nullptr, nullptr, nullptr, &count);
            result != CuResult::success) {
            return failed(result, "cuGraphGetEdges");
        }
        if (count == 0) {
            return {};
        }
        std::vector<GraphNode> from(count);
        std::vector<GraphNode> to(count);
        std::vector<EdgeData> data(count, EdgeData{});
        if (const CuResult result = driver_.edges_of(graph, from.data(), to.data(), data.data(), &count);
            result != CuResult::success) {
            return failed(result, "cuGraphGetEdges");
        }
        edges.reserve(edges.size() + count);
        for (std::size_t i = 0; i < std::min(count, from.size()); ++i) {
            const auto source = numbers.find(from[i]);
            const auto target = numbers.find(to[i]);
            if (source == numbers.end() || target == numbers.end()) {
                return Error{ErrorCode::corrupt,
                             "cuGraphGetEdges names a node that cuGraphGetNodes did not; " + std::string(advice) + "."};
            }
            const bool full = data[i].from_port == 0 && data[i].to_port == 0 && data[i].type == 0;
            edges.push_back(ShapeEdge{source->second, target->second, full});
        }
        return {};
    }

    const Driver& driver_;
    GraphShape* shape_ = nullptr;
    std::map<std::tuple<std::uint32_t, std::string, bool, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned>,
             std::uint32_t>
        kind_ids_;
    Counts types_;
    Counts kernels_;
    std::map<std::string, std::uint32_t> name_ids_;
    std::unordered_map<const void*, std::string> functions_;
    bool memory_ = false;
    bool conditional_ = false;
    bool updatable_ = false;
};

} // namespace

std::string word_of(NodeType type) {
    static const char* const words[] = {"kernel",
                                        "memcpy",
                                        "memset",
                                        "host",
                                        "child graph",
                                        "empty",
                                        "event wait",
                                        "event record",
                                        "semaphore signal",
                                        "semaphore wait",
                                        "memory allocation",
                                        "memory free",
                                        "batch memory operation",
                                        "conditional"};
    const int value = static_cast<int>(type);
    const bool known = value >= 0 && value < static_cast<int>(std::size(words));
    return known ? words[value] : "type " + std::to_string(value);
}

Result<GraphShape> read_shape(const Driver& driver, Graph graph) {
    GraphShape shape;
    ShapeReader reader(driver);
    if (Status status = reader.read(graph, shape); !status) {
        return status.error();
    }
    return shape;
}

std::vector<recording::GraphNodeChange> compare_kernels(const std::vector<recording::NamedCount>& before,
                                                        const std::vector<recording::NamedCount>& after) {
    std::map<std::string, recording::GraphNodeChange> all;
    for (const auto& [name, count] : before) {
        all[name].before = static_cast<std::uint32_t>(count);
    }
    for (const auto& [name, count] : after) {
        all[name].after = static_cast<std::uint32_t>(count);
    }
    std::vector<recording::GraphNodeChange> changes;
    for (auto& [name, change] : all) {
        if (change.before != change.after) {
            change.kernel = name;
            changes.push_back(change);
        }
    }
    return changes;
}

} // namespace plumb::cudagraph
