// SPDX-License-Identifier: Apache-2.0
// Copies that undo each other: from the graph of one step.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "answers/findings/detect.hpp"

namespace plumb::findings {
namespace {

/// Of one call of what a transfer was timed by, in all counted steps: the mean and three standard errors of it.
double call_at_most(const FoundInPhase& found, const std::string& name, bool device) {
    double most = 0;
    for (const Row& row : found.run.report.bricks) {
        if (row.key.phase == found.phase && row.key.name == name && row.device == device && row.time.count != 0) {
            most = std::max(most, row.time.mean_ns + error_of(row));
        }
    }
    return most;
}

/// How much shorter the path is without all of these; absent: `plumb path` cannot tell of one of them.
std::optional<double> gain_without(const PathReport& path, const std::set<NodeId>& copies) {
    for (const NodeId id : copies) {
        for (const PathRow& row : path.rows) {
            const GraphNode& node = path.graph[id];
            if (row.name == path.graph.name_of(id) && row.kind == node.kind && row.device == node.device &&
                !row.gain_ns.value) {
                return std::nullopt;
            }
        }
    }
    return static_cast<double>(path.analysis.length_ns - path.graph.length_without_all({copies.begin(), copies.end()}));
}

/// From the end of what its track did before it to its begin, by node; 0 for the first of a track.
std::map<NodeId, double> gaps_before(const ExecGraph& graph, const std::set<NodeId>& of) {
    std::vector<NodeId> order;
    for (NodeId id = 0; id < graph.size(); ++id) {
        if (graph[id].timed && !graph[id].container) {
            order.push_back(id);
        }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](NodeId a, NodeId b) { return graph[a].begin_ns < graph[b].begin_ns; });
    std::map<std::uint32_t, std::int64_t> ends; // by track
    std::map<NodeId, double> gaps;
    for (const NodeId id : order) {
        const GraphNode& node = graph[id];
        const auto [end, first] = ends.try_emplace(node.track, node.begin_ns);
        if (of.contains(id)) {
            gaps[id] = static_cast<double>(std::max<std::int64_t>(node.begin_ns - end->second, 0));
        }
        end->second = std::max(end->second, node.begin_ns + node.duration_ns);
    }
    return gaps;
}

} // namespace

void find_ping_pong(FoundInPhase& found) {
    if (!found.run.path.ok()) {
        found.cannot(FindingKind::ping_pong, found.run.path.error().message);
        return;
    }
    const PathReport& path = *found.run.path;
    if (path.phase != found.phase) {
        found.cannot(FindingKind::ping_pong, "plumb path looked at a step of another phase");
        return;
    }
    std::set<NodeId> transfers;
    for (const PingPong& pair : path.ping_pong) {
        transfers.insert({pair.there, pair.back});
    }
    if (transfers.empty()) {
        return;
    }
    Finding finding;
    finding.kind = FindingKind::ping_pong;
    double copies_ns = 0;
    for (const auto& [id, gap] : gaps_before(path.graph, transfers)) {
        const GraphNode& node = path.graph[id];
        const auto duration = static_cast<double>(node.duration_ns);
        const std::string brick = node.parent == no_node ? std::string() : path.graph.name_of(node.parent);
        finding.subject =
            finding.subject.empty() && node.parent != no_node && path.graph[node.parent].kind == NodeKind::brick
                ? brick
                : finding.subject;
        copies_ns += duration;
        finding.at_most_ns += std::max(duration, call_at_most(found, brick, node.device)) + gap;
    }
    const std::optional<double> gain = gain_without(path, transfers);
    finding.likely_ns = std::min(copies_ns, gain.value_or(copies_ns));
    const std::string step = "in step " + std::to_string(path.step);
    finding.claim = "Buffers go to the other side and come back " + std::to_string(path.ping_pong.size()) +
                    " times a step, which takes " + us(copies_ns) + ".";
    finding.evidence.push_back({"plumb path",
                                "pairs of copies that undo each other " + step,
                                {static_cast<double>(path.ping_pong.size()), {}},
                                ""});
    finding.evidence.push_back(us_per_step("plumb path", "these copies " + step, copies_ns));
    if (gain) {
        finding.evidence.push_back(us_per_step("plumb path", "without all of them its path is shorter by", *gain));
    }
    finding.refuted_by =
        "work on the other side that changes the buffer in between, and cannot be done where the buffer lies";
    found.add(std::move(finding), Sureness::likely, "the copies are those of one step of median length",
              found.wall.steps);
}

} // namespace plumb::findings
