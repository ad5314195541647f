// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/node_image.hpp"

#include <algorithm>
#include <map>

#include "cudagraph/graph_shape.hpp"
#include "fingerprint/cuda/tensor_device.hpp"

namespace plumb::cudagraph {

using cuda::CuResult;
using cuda::NodeType;

namespace {

constexpr std::size_t most_parameters = 4096;

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
    hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
    hash *= 0xbf58476d1ce4e5b9ULL;
    return hash ^ (hash >> 31);
}

std::uint64_t hash_of(const std::string& text) {
    std::uint64_t hash = 14695981039346656037ULL;
    for (const char c : text) {
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    }
    return hash;
}

template <class... T>
ImagePart part_of(std::string what, const T&... values) {
    ImagePart part{std::move(what), {}};
    (part.bytes.append(reinterpret_cast<const char*>(&values), sizeof(values)), ...);
    return part;
}

/// Nodes in an order in which every edge goes forward; fewer where edges form a cycle.
std::vector<std::uint32_t> topological(const GraphShape& shape, const std::vector<std::vector<std::uint32_t>>& after) {
    std::vector<std::uint32_t> waiting(shape.nodes.size(), 0);
    for (const ShapeEdge& edge : shape.edges) {
        ++waiting[edge.to];
    }
    std::vector<std::uint32_t> order;
    order.reserve(shape.nodes.size());
    for (std::uint32_t node = 0; node < shape.nodes.size(); ++node) {
        if (waiting[node] == 0) {
            order.push_back(node);
        }
    }
    for (std::size_t done = 0; done < order.size(); ++done) {
        for (const std::uint32_t next : after[order[done]]) {
            if (--waiting[next] == 0) {
                order.push_back(next);
            }
        }
    }
    return order;
}

/// Hash of a node's name and of all that lies on the side `neighbours` lead to; visited so that those come first.
std::vector<std::uint64_t> side_hashes(const GraphShape& shape, const std::vector<std::uint32_t>& order,
                                       const std::vector<std::vector<std::uint32_t>>& neighbours) {
    std::vector<std::uint64_t> hashes(shape.nodes.size(), 0);
    std::vector<std::uint64_t> around;
    for (const std::uint32_t node : order) {
        around.clear();
        for (const std::uint32_t neighbour : neighbours[node]) {
            around.push_back(hashes[neighbour]);
        }
        std::sort(around.begin(), around.end());
        std::uint64_t hash = hash_of(shape.names[shape.name_of[node]]);
        for (const std::uint64_t other : around) {
            hash = mixed(hash, other);
        }
        hashes[node] = mixed(hash, around.size());
    }
    return hashes;
}

class ImageReader {
  public:
    ImageReader(GuardedDriver& driver, GraphImage& image) : driver_(driver), calls_(driver.calls()), image_(image) {}

    Status read(cuda::Graph graph, const std::string& within, unsigned depth) {
        Result<GraphShape> read = read_shape(calls_, graph);
        if (!read) {
            driver_.look();
            return read.error();
        }
        const GraphShape& shape = *read;
        if (depth == 0) {
            image_.kernels = shape.kernels;
        }
        std::vector<NodeImage> nodes = place(shape);
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            const bool kernel = shape.types[i] == NodeType::kernel;
            nodes[i].name = within + (kernel ? "kernel " : "") + shape.names[shape.name_of[i]];
            const Result<bool> known = read_node(shape.nodes[i], shape.types[i], depth, nodes[i]);
            if (!known) {
                return known.error();
            }
            if (!*known) {
                ++image_.unread[nodes[i].name];
            }
        }
        std::vector<std::size_t> order(nodes.size());
        for (std::size_t i = 0; i < order.size(); ++i) {
            order[i] = i;
        }
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return before(nodes[a], nodes[b]); });
        for (const std::size_t i : order) {
            image_.nodes.push_back(std::move(nodes[i]));
            if (shape.types[i] == NodeType::graph && depth < deepest_child) {
                if (Status status = read_child(shape.nodes[i], within, depth); !status) {
                    return status;
                }
            }
        }
        return {};
    }

  private:
    static bool before(const NodeImage& a, const NodeImage& b) {
        if (a.depth != b.depth) {
            return a.depth < b.depth;
        }
        if (a.place != b.place) {
            return a.place < b.place;
        }
        return std::lexicographical_compare(
            a.parts.begin(), a.parts.end(), b.parts.begin(), b.parts.end(),
            [](const ImagePart& left, const ImagePart& right) { return left.bytes < right.bytes; });
    }

    static std::vector<NodeImage> place(const GraphShape& shape) {
        const std::size_t count = shape.nodes.size();
        std::vector<std::vector<std::uint32_t>> after(count);
        std::vector<std::vector<std::uint32_t>> ahead(count);
        for (const ShapeEdge& edge : shape.edges) {
            after[edge.from].push_back(edge.to);
            ahead[edge.to].push_back(edge.from);
        }
        std::vector<std::uint32_t> order = topological(shape, after);
        const std::vector<std::uint64_t> forward = side_hashes(shape, order, ahead);
        std::vector<NodeImage> nodes(count);
        for (const std::uint32_t node : order) {
            for (const std::uint32_t next : after[node]) {
                nodes[next].depth = std::max(nodes[next].depth, nodes[node].depth + 1);
            }
        }
        std::reverse(order.begin(), order.end());
        const std::vector<std::uint64_t> backward = side_hashes(shape, order, after);
        for (std::size_t i = 0; i < count; ++i) {
            nodes[i].place = mixed(forward[i], backward[i]);
        }
        return nodes;
    }

    Status read_child(cuda::GraphNode node, const std::string& within, unsigned depth) {
        cuda::Graph child = nullptr;
        const CuResult result = calls_.graph_child_node_get_graph(node, &child);
        if (Status status = driver_.check(result, "cuGraphChildGraphNodeGetGraph"); !status) {
            return status;
        }
        return read(child, within + "child graph, ", depth + 1);
    }

    /// False: it has parameters, or nodes of its own, that cannot be read.
    Result<bool> read_node(cuda::GraphNode node, NodeType type, unsigned depth, NodeImage& image) {
        Status status;
        switch (type) {
        case NodeType::kernel:
            if (image.name == std::string("kernel ") + fingerprint::kernel_name) {
                return true; // ours: each capture has slots of its own
            }
            return read_kernel(node, image);
        case NodeType::batch_mem_op:
            return read_memory_operations(node, image);
        case NodeType::memcpy:
            status = read_copy(node, image);
            break;
        case NodeType::memset:
            status = read_memset(node, image);
            break;
        case NodeType::host:
            status = read_host(node, image);
            break;
        case NodeType::empty:
            break;
        case NodeType::graph:
            return depth < deepest_child;
        default:
            return false;
        }
        return status ? Result<bool>(true) : Result<bool>(status.error());
    }

    /// A union: operations of other kinds are laid out otherwise.
    Result<bool> read_memory_operations(cuda::GraphNode node, NodeImage& image) {
        if (calls_.graph_batch_mem_op_node_get_params == nullptr) {
            return false;
        }
        cuda::BatchMemOpNodeParams params{};
        const CuResult result = calls_.graph_batch_mem_op_node_get_params(node, &params);
        if (Status status = driver_.check(result, "cuGraphBatchMemOpNodeGetParams"); !status) {
            return status.error();
        }
        image.parts.push_back(part_of("operation count", params.count));
        for (unsigned i = 0; i < params.count; ++i) {
            const cuda::WriteValueOp& one = params.operations[i];
            const bool half =
                one.operation == cuda::mem_op_write_value_32 || one.operation == cuda::mem_op_wait_value_32;
            if (!half && one.operation != cuda::mem_op_write_value_64 && one.operation != cuda::mem_op_wait_value_64) {
                return false;
            }
            const std::string which = "operation " + std::to_string(i);
            image.parts.push_back(part_of(which, one.operation, one.flags));
            image.parts.push_back(part_of(which + " address", one.address));
            image.parts.push_back(part_of(which + " value", half ? one.value & 0xffffffffu : one.value));
        }
        return true;
    }

    Result<bool> read_kernel(cuda::GraphNode node, NodeImage& image) {
        cuda::KernelNodeParams params{};
        if (Status status = driver_.check(calls_.kernel_params(node, &params), "cuGraphKernelNodeGetParams"); !status) {
            return status.error();
        }
        image.parts.push_back(part_of("grid", params.grid_x, params.grid_y, params.grid_z));
        image.parts.push_back(part_of("block", params.block_x, params.block_y, params.block_z));
        image.parts.push_back(part_of("shared memory", params.shared_bytes));
        const char* packed = nullptr;
        std::size_t packed_bytes = 0;
        unpack(params.extra, packed, packed_bytes);
        bool known = true;
        for (std::size_t index = 0; index < most_parameters; ++index) {
            std::size_t offset = 0;
            std::size_t bytes = 0;
            const CuResult result = params.func != nullptr
                                        ? calls_.func_get_param_info(params.func, index, &offset, &bytes)
                                        : calls_.kernel_get_param_info(params.kern, index, &offset, &bytes);
            if (result == CuResult::invalid_value) {
                break; // the one behind the last
            }
            if (Status status = driver_.check(result, "cuFuncGetParamInfo"); !status) {
                return status.error();
            }
            ImagePart part{"parameter " + std::to_string(index), {}};
            if (params.kernel_params != nullptr) {
                part.bytes.assign(static_cast<const char*>(params.kernel_params[index]), bytes);
            } else if (packed != nullptr && offset + bytes <= packed_bytes) {
                part.bytes.assign(packed + offset, bytes);
            } else {
                known = false;
            }
            image.parts.push_back(std::move(part));
        }
        return known;
    }

    /// The other way to give a kernel its parameters: one buffer, named by a list that ends in null.
    static void unpack(void** extra, const char*& packed, std::size_t& bytes) {
        constexpr std::uintptr_t buffer_pointer = 1;
        constexpr std::uintptr_t buffer_size = 2;
        for (; extra != nullptr && *extra != nullptr; extra += 2) {
            const auto what = reinterpret_cast<std::uintptr_t>(extra[0]);
            if (what == buffer_pointer) {
                packed = static_cast<const char*>(extra[1]);
            } else if (what == buffer_size) {
                bytes = *static_cast<const std::size_t*>(extra[1]);
            } else {
                return;
            }
        }
    }

    Status read_copy(cuda::GraphNode node, NodeImage& image) {
        cuda::Memcpy3d copy{};
        const CuResult result = calls_.graph_memcpy_node_get_params(node, &copy);
        if (Status status = driver_.check(result, "cuGraphMemcpyNodeGetParams"); !status) {
            return status;
        }
        image.parts.push_back(part_of("source", copy.src_host, copy.src_device, copy.src_array, copy.src_x_bytes,
                                      copy.src_y, copy.src_z, copy.src_memory_type));
        image.parts.push_back(part_of("destination", copy.dst_host, copy.dst_device, copy.dst_array, copy.dst_x_bytes,
                                      copy.dst_y, copy.dst_z, copy.dst_memory_type));
        image.parts.push_back(part_of("extent", copy.width_bytes, copy.height, copy.depth));
        return {};
    }

    Status read_memset(cuda::GraphNode node, NodeImage& image) {
        cuda::MemsetNodeParams params{};
        const CuResult result = calls_.graph_memset_node_get_params(node, &params);
        if (Status status = driver_.check(result, "cuGraphMemsetNodeGetParams"); !status) {
            return status;
        }
        image.parts.push_back(part_of("destination", params.dst));
        image.parts.push_back(part_of("value", params.value));
        image.parts.push_back(part_of("extent", params.width, params.height));
        return {};
    }

    Status read_host(cuda::GraphNode node, NodeImage& image) {
        cuda::HostNodeParams params{};
        const CuResult result = calls_.graph_host_node_get_params(node, &params);
        if (Status status = driver_.check(result, "cuGraphHostNodeGetParams"); !status) {
            return status;
        }
        image.parts.push_back(part_of("function", params.fn));
        image.parts.push_back(part_of("user data", params.user));
        return {};
    }

    GuardedDriver& driver_;
    const cuda::Driver& calls_;
    GraphImage& image_;
};

bool same_place(const NodeImage& a, const NodeImage& b) {
    return a.depth == b.depth && a.place == b.place && a.name == b.name;
}

BakedIn structure_difference(const GraphImage& first, const GraphImage& second) {
    BakedIn found;
    found.node = "graph";
    found.part = "structure";
    found.text = "the captures differ in structure: " + std::to_string(first.nodes.size()) + " nodes against " +
                 std::to_string(second.nodes.size());
    for (const recording::GraphNodeChange& change : compare_kernels(first.kernels, second.kernels)) {
        found.text += ", kernel " + change.kernel + ' ' + std::to_string(change.before) + " against " +
                      std::to_string(change.after);
    }
    return found;
}

/// What nobody could look at may be baked in too.
std::vector<BakedIn> not_compared(const GraphImage& first, const GraphImage& second) {
    std::map<std::string, std::uint32_t> most = first.unread;
    for (const auto& [name, count] : second.unread) {
        most[name] = std::max(most[name], count);
    }
    std::vector<BakedIn> list;
    for (const auto& [name, count] : most) {
        BakedIn entry;
        entry.node = name;
        entry.part = "not compared";
        entry.text = "not compared: " + std::to_string(count) + (count == 1 ? " node" : " nodes") + " of type " + name;
        list.push_back(std::move(entry));
    }
    return list;
}

BakedIn part_difference(const NodeImage& node, std::uint32_t occurrence, const ImagePart& a, const std::string& other) {
    const std::size_t shorter = std::min(a.bytes.size(), other.size());
    std::size_t first = 0;
    while (first < shorter && a.bytes[first] == other[first]) {
        ++first;
    }
    std::size_t last = std::max(a.bytes.size(), other.size()) - 1;
    if (a.bytes.size() == other.size()) {
        while (last > first && a.bytes[last] == other[last]) {
            --last;
        }
    }
    BakedIn found{node.name, occurrence, a.what, first, last, {}};
    found.text = node.name + " #" + std::to_string(occurrence) + ", " + a.what + ", bytes " + std::to_string(first) +
                 ".." + std::to_string(last);
    return found;
}

/// Nodes in the same place of both graphs cannot be told apart but by their parameters: equal ones pair up first.
void compare_group(std::vector<const NodeImage*> first, std::vector<const NodeImage*> second, std::uint32_t occurrence,
                   std::vector<BakedIn>& found) {
    for (std::size_t i = 0; i < first.size();) {
        const auto equal = std::find_if(second.begin(), second.end(),
                                        [&](const NodeImage* other) { return other->parts == first[i]->parts; });
        if (equal == second.end()) {
            ++i;
            continue;
        }
        second.erase(equal);
        first.erase(first.begin() + static_cast<std::ptrdiff_t>(i));
        ++occurrence;
    }
    for (std::size_t i = 0; i < first.size() && i < second.size(); ++i) {
        const NodeImage& node = *first[i];
        for (std::size_t p = 0; p < node.parts.size(); ++p) {
            static const std::string none;
            const std::string& other = p < second[i]->parts.size() ? second[i]->parts[p].bytes : none;
            if (node.parts[p].bytes != other) {
                found.push_back(
                    part_difference(node, occurrence + static_cast<std::uint32_t>(i), node.parts[p], other));
            }
        }
    }
}

} // namespace

Result<GraphImage> image_of(GuardedDriver& driver, cuda::Graph graph) {
    if (driver.calls().func_get_param_info == nullptr || driver.calls().kernel_get_param_info == nullptr) {
        return Error{ErrorCode::unsupported,
                     "this driver (CUDA " + std::to_string(driver.calls().version / 1000) + '.' +
                         std::to_string(driver.calls().version % 1000 / 10) +
                         ") does not tell the sizes of kernel parameters: use CUDA 12.4 or later."};
    }
    GraphImage image;
    if (Status status = ImageReader(driver, image).read(graph, "", 0); !status) {
        return status.error();
    }
    return image;
}

std::vector<BakedIn> differences(const GraphImage& first, const GraphImage& second) {
    const bool same = first.nodes.size() == second.nodes.size() &&
                      std::equal(first.nodes.begin(), first.nodes.end(), second.nodes.begin(), same_place);
    const std::vector<BakedIn> unread = not_compared(first, second);
    std::vector<BakedIn> found;
    if (!same) {
        found.push_back(structure_difference(first, second));
        found.insert(found.end(), unread.begin(), unread.end());
        return found;
    }
    std::map<std::string, std::uint32_t> seen;
    for (std::size_t begin = 0; begin < first.nodes.size();) {
        std::vector<const NodeImage*> left;
        std::vector<const NodeImage*> right;
        std::size_t end = begin;
        for (; end < first.nodes.size() && same_place(first.nodes[begin], first.nodes[end]); ++end) {
            left.push_back(&first.nodes[end]);
            right.push_back(&second.nodes[end]);
        }
        std::uint32_t& occurrence = seen[first.nodes[begin].name];
        compare_group(std::move(left), std::move(right), occurrence, found);
        occurrence += static_cast<std::uint32_t>(end - begin);
        begin = end;
    }
    found.insert(found.end(), unread.begin(), unread.end());
    return found;
}

} // namespace plumb::cudagraph
