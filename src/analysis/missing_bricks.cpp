// SPDX-License-Identifier: Apache-2.0
#include "analysis/missing_bricks.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace plumb::analysis {
namespace {

using Bricks = std::set<std::string>;

constexpr std::size_t least_layers = 3; // fewer have no usual one
constexpr std::size_t most_sentences = 16;

bool is_brick(const ExecGraph& graph, const GraphNode& node) {
    if (!node.layer || (node.kind != NodeKind::brick && node.kind != NodeKind::transfer)) {
        return false;
    }
    return node.parent == no_node ||
           graph[node.parent].kind != NodeKind::brick; // what lies in a brick is its own affair
}

} // namespace

std::vector<std::string> missing_bricks(const ExecGraph& graph) {
    std::map<std::uint32_t, Bricks> layers;
    for (NodeId id = 0; id < graph.size(); ++id) {
        if (graph[id].kind == NodeKind::layer && graph[id].layer) {
            layers[*graph[id].layer];
        } else if (is_brick(graph, graph[id])) {
            layers[*graph[id].layer].insert(graph.name_of(id));
        }
    }
    std::map<Bricks, std::size_t> kinds;
    for (const auto& [layer, bricks] : layers) {
        ++kinds[bricks];
    }
    const auto usual =
        std::max_element(kinds.begin(), kinds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (layers.size() < least_layers || 2 * usual->second <= layers.size()) {
        return {};
    }
    std::vector<std::string> sentences;
    for (const auto& [layer, bricks] : layers) {
        if (bricks.size() >= usual->first.size() || sentences.size() == most_sentences ||
            !std::includes(usual->first.begin(), usual->first.end(), bricks.begin(), bricks.end())) {
            continue;
        }
        std::vector<std::string> missing;
        std::set_difference(usual->first.begin(), usual->first.end(), bricks.begin(), bricks.end(),
                            std::back_inserter(missing));
        std::string names;
        for (const std::string& name : missing) {
            names += (names.empty() ? "" : ", ") + name;
        }
        sentences.push_back("Layer " + std::to_string(layer) + " has no " + names + ", unlike " +
                            std::to_string(usual->second) + " of " + std::to_string(layers.size()) + " layers.");
    }
    return sentences;
}

} // namespace plumb::analysis
