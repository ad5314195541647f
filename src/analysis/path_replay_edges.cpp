// SPDX-License-Identifier: Apache-2.0
// The edges of captured graphs in the graph of a step. A node has no time of its own, its scope has: so an edge that leads from
// one scope to another says that the whole of the later one came after the whole of the earlier one where their times agree
// with that, and else no more than that the later node came after the earlier scope had begun. So no way over
// edges is longer than what was measured. An edge that the times contradict (programmatic launches overlap) is left out.
#include <algorithm>
#include <limits>

#include "analysis/path_graph.hpp"

namespace plumb::analysis {
namespace {

constexpr auto never = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t far = never / 4; // no run lasts so long
constexpr auto always = std::numeric_limits<std::int64_t>::min();

} // namespace

class PathGraph::ReplayEdges {
  public:
    ReplayEdges(ExecGraphBuilder& builder, const Replay& replay, const std::vector<NodeId>& ids)
        : builder_(builder), replay_(replay), nodes_(*replay.nodes), ids_(ids), latest_(ids.size(), never),
          earliest_(ids.size(), always) {}

    /// Without times: `launch` comes before what waits for nothing else.
    void add_untimed(NodeId launch) {
        for (const auto& [from, to] : nodes_.edges()) {
            if (scope_of(from) == scope_of(to)) {
                builder_.depend(ids_[from], ids_[to]);
            }
        }
        for (std::size_t i = 0; i < ids_.size() && launch != no_node; ++i) {
            if (!nodes_.waits(i) && scope_of(i) == nullptr && nodes_.content().nodes[i].parent_plus_one == 0) {
                builder_.depend(launch, ids_[i]);
            }
        }
    }

    /// Between `first` and `last`, which all of the replay lies between.
    void add_timed(NodeId first, NodeId last) {
        find_latest();
        for (const auto& [from, to] : nodes_.edges()) {
            add(from, to);
        }
        for (const Interval* leaf : replay_.leaves) {
            if (!waits_.contains(leaf)) {
                builder_.depend(first, leaf->node);
            }
            if (!leads_on_.contains(leaf)) {
                builder_.depend(leaf->node, last);
            }
        }
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            if (scope_of(i) != nullptr || nodes_.content().nodes[i].parent_plus_one != 0) {
                continue;
            }
            if (!nodes_.waits(i)) {
                builder_.depend(first, ids_[i]);
            }
            if (!nodes_.leads_on(i)) {
                builder_.depend(ids_[i], last);
            }
        }
    }

    [[nodiscard]] std::size_t contradicted() const noexcept { return contradicted_; }

  private:
    [[nodiscard]] const Interval* scope_of(std::size_t node) const {
        const std::uint32_t site = nodes_.site(node);
        return site == CapturedNodes::none || replay_.of_site.empty() ? nullptr : replay_.of_site[site];
    }
    /// Twice the moment: what lies inside a scope comes after its begin, if only by one.
    static std::int64_t border(std::int64_t moment) { return 2 * std::clamp(moment, -far, far); }
    /// It has the time of its scope.
    [[nodiscard]] bool alone(std::size_t node) const {
        const Interval* scope = scope_of(node);
        return scope != nullptr && scope->leaf && nodes_.info().sites[nodes_.site(node)].leaf &&
               nodes_.working(nodes_.site(node)) == 1;
    }

    /// By node: when the first scope behind it began, its own included.
    void find_latest() {
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            if (const Interval* scope = scope_of(i); scope != nullptr) {
                latest_[i] = scope->begin_ns;
                earliest_[i] = border(scope->begin_ns) + 1;
            }
        }
        for (auto edge = nodes_.edges().rbegin(); edge != nodes_.edges().rend(); ++edge) {
            if (scope_of(edge->first) == nullptr) {
                latest_[edge->first] = std::min(latest_[edge->first], latest_[edge->second]);
            }
        }
    }

    void add(std::uint32_t from, std::uint32_t to) {
        const Interval* a = scope_of(from);
        const Interval* b = scope_of(to);
        if (a != nullptr && a == b) {
            builder_.depend(ids_[from], ids_[to]);
            earliest_[to] = std::max(earliest_[to], earliest_[from]);
            return;
        }
        const bool whole = a != nullptr && a->leaf && a->end_ns <= latest_[to];
        const std::int64_t moment = whole ? border(a->end_ns) : earliest_[from];
        const NodeId earlier = whole ? a->node : ids_[from];
        const bool to_whole = b != nullptr && b->leaf && moment <= border(b->begin_ns);
        const bool possible = to_whole || b == nullptr || (moment < border(b->end_ns) && !alone(to));
        if ((!whole && alone(from)) || !possible) {
            ++contradicted_;
            return;
        }
        builder_.depend(earlier, to_whole ? b->node : ids_[to]);
        if (whole || to_whole) {
            builder_.depend(ids_[from], ids_[to]); // follows from that, and is what the graph says
        }
        earliest_[to] = std::max(earliest_[to], moment);
        if (whole) {
            leads_on_.insert(a);
        }
        if (to_whole) {
            waits_.insert(b);
        }
    }

    ExecGraphBuilder& builder_;
    const Replay& replay_;
    const CapturedNodes& nodes_;
    const std::vector<NodeId>& ids_;
    std::vector<std::int64_t> latest_;           // by node: it began before that
    std::vector<std::int64_t> earliest_;         // and after that, as border()
    std::set<const Interval*> waits_, leads_on_; // as a whole
    std::size_t contradicted_ = 0;
};

/// What joins the branches of a replay: it takes no time.
NodeId PathGraph::add_border(const Replay& replay, const char* word, std::int64_t moment) {
    GraphNode node;
    node.name = builder_.name("graph " + std::to_string(replay.submission->key) + " " + word);
    node.track = replay.track->number;
    node.device = true;
    node.begin_ns = moment;
    node.timed = false;
    node.parent = root_;
    return builder_.add(node);
}

void PathGraph::add_replays() {
    std::size_t contradicted = 0;
    for (const Replay& replay : replays_) {
        if (replay.nodes == nullptr) {
            continue;
        }
        const std::vector<NodeId> ids = add_captured(replay);
        ReplayEdges edges(builder_, replay, ids);
        if (!replay.by_edges) {
            edges.add_untimed(replay.launch != nullptr && replay.leaves.empty() ? replay.launch->launched : no_node);
            continue;
        }
        std::int64_t end = replay.leaves.front()->end_ns;
        for (const Interval* leaf : replay.leaves) {
            end = std::max(end, leaf->end_ns);
        }
        Item whole;
        whole.begin_ns = replay.leaves.front()->begin_ns;
        whole.end_ns = end;
        whole.node = add_border(replay, "begins", whole.begin_ns);
        whole.last = add_border(replay, "ends", end);
        edges.add_timed(whole.node, whole.last);
        if (replay.launch != nullptr && whole.begin_ns > replay.launch->begin_ns) {
            builder_.depend(replay.launch->launched, whole.node);
        }
        contradicted += edges.contradicted();
        const auto queue = queue_of_graph_.find(replay.track->id);
        TrackData& track = queue == queue_of_graph_.end() ? *replay.track : tracks_.at(queue->second);
        track.order.push_back(whole);
    }
    if (contradicted != 0) {
        notes_.push_back(
            std::to_string(contradicted) +
            " edges of captured graphs lead to what began before the earlier had ended: they are left out.");
    }
}

} // namespace plumb::analysis
