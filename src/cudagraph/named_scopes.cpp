// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/named_scopes.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "cudagraph/graph_content.hpp"
#include "record/name_registry.hpp"

namespace plumb::cudagraph {

using backends::cuda::NodeType;
using recording::CapturedWork;

namespace {

constexpr std::uint32_t most_layers = 0xfffe;

std::optional<CapturedWork> work_of(NodeType type) {
    switch (type) {
    case NodeType::kernel:
        return CapturedWork::kernel;
    case NodeType::memcpy:
        return CapturedWork::copy;
    case NodeType::memset:
        return CapturedWork::fill;
    default:
        return std::nullopt;
    }
}

/// The graph's own nodes in the order of order_of(), on lanes: behind a fork the longest branch goes on with the lane; the others take one
/// on which nothing is left that others wait for, or a new one.
class Lanes {
  public:
    explicit Lanes(const GraphShape& shape) : before(shape.nodes.size()), lane_of(shape.nodes.size(), 0) {
        std::vector<std::uint32_t> unseen(shape.nodes.size(), 0); // nodes that wait for it and have no lane yet
        for (const ShapeEdge& edge : shape.edges) {
            before[edge.to].push_back(edge.from);
            ++unseen[edge.from];
        }
        order = order_of(shape);
        std::erase_if(order, [&](std::uint32_t node) { return node >= shape.nodes.size(); });
        const std::vector<std::uint32_t> heir = heirs();
        std::vector<std::uint32_t> last; // of each lane
        for (const std::uint32_t node : order) {
            std::uint32_t lane = no_index;
            for (const std::uint32_t one : before[node]) {
                --unseen[one];
                if (last[lane_of[one]] == one && heir[one] == node) {
                    lane = std::min(lane, lane_of[one]);
                }
            }
            for (std::uint32_t i = 0; lane == no_index && i < last.size(); ++i) {
                lane = unseen[last[i]] == 0 ? i : no_index;
            }
            if (lane == no_index) {
                lane = static_cast<std::uint32_t>(last.size());
                last.push_back(node);
            }
            last[lane] = node;
            lane_of[node] = lane;
        }
        lanes = last.size();
    }

    std::vector<std::vector<std::uint32_t>> before; // of each node: those that it waits for
    std::vector<std::uint32_t> lane_of;             // of each node
    std::vector<std::uint32_t> order;
    std::size_t lanes = 0;

  private:
    /// Of each node the one that waits for it from which the way to the graph's end is longest; of several the first.
    [[nodiscard]] std::vector<std::uint32_t> heirs() const {
        std::vector<std::uint32_t> heir(before.size(), no_index);
        std::vector<std::uint32_t> way(before.size(), 0); // nodes behind it, on the longest way
        for (auto node = order.rbegin(); node != order.rend(); ++node) {
            for (const std::uint32_t one : before[*node]) {
                if (way[*node] + 1 >= way[one]) {
                    way[one] = way[*node] + 1;
                    heir[one] = *node;
                }
            }
        }
        return heir;
    }
};

std::string words_of(const recording::NodeNames& names) {
    std::string text = "names of kernels (" + std::to_string(names.by_name) + " nodes) and their places (" +
                       std::to_string(names.by_place) + ")";
    if (names.unknown != 0) {
        text += ", " + std::to_string(names.unknown) + " called what their kernel is called";
    }
    text += names.layers == 0 ? ", no layers found" : ", " + std::to_string(names.layers) + " layers";
    if (!names.doubts.empty()) {
        text += names.layers == 0 ? ": " : ", uncertain: ";
        text += names.doubts.front();
    }
    return text;
}

} // namespace

NamedScopes scopes_by_name(const GraphShape& shape, recording::NameNodes name_nodes, const Recorder& recorder) {
    const Lanes lanes(shape);
    std::vector<recording::NodeToName> asked;
    std::vector<std::uint32_t> nodes; // of each that is asked for
    for (const std::uint32_t node : lanes.order) {
        if (const std::optional<CapturedWork> work = work_of(shape.types[node])) {
            asked.push_back({shape.names[shape.name_of[node]], lanes.lane_of[node], *work});
            nodes.push_back(node);
        }
    }
    NamedScopes made;
    const recording::NodeNames names = name_nodes(asked);
    if (names.brick_of.size() != nodes.size()) {
        made.told_by = names.doubts.empty() ? "" : "n/a: " + names.doubts.front();
        return made;
    }
    std::vector<Name> interned;
    for (const recording::NodeBrick& brick : names.bricks) {
        interned.push_back(record::intern_name(brick.name, brick.category));
    }
    struct Open {
        std::uint32_t scope = no_index;
        std::uint32_t brick = 0;
        std::uint32_t last = no_index; // node
    };
    std::vector<Open> open(lanes.lanes);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
        const std::uint32_t node = nodes[i];
        Open& lane = open[lanes.lane_of[node]];
        const std::optional<std::uint32_t> layer = names.layer_of[i];
        const auto layer_plus_one =
            static_cast<std::uint16_t>(layer && *layer < most_layers ? *layer + 1 : std::uint32_t{0});
        const std::vector<std::uint32_t>& before = lanes.before[node];
        const bool goes_on = lane.scope != no_index && lane.brick == names.brick_of[i] &&
                             made.notes[lane.scope].label.layer_plus_one == layer_plus_one && before.size() == 1 &&
                             before.front() == lane.last;
        if (!goes_on) {
            backends::cuda::ScopeNote note;
            note.label = ScopeLabel{&recorder, interned[names.brick_of[i]].id, layer_plus_one, false, true};
            note.ended = true;
            note.context = shape.context;
            MappedScope scope;
            scope.stream = lanes.lane_of[node];
            scope.begin = before;
            lane.scope = static_cast<std::uint32_t>(made.notes.size());
            lane.brick = names.brick_of[i];
            made.notes.push_back(std::move(note));
            made.scopes.push_back(std::move(scope));
        }
        lane.last = node;
        made.scopes[lane.scope].end = {node};
    }
    made.told_by = words_of(names);
    return made;
}

} // namespace plumb::cudagraph
