// SPDX-License-Identifier: Apache-2.0
// Edges of one track: what ended before something begins there comes before it; what overlaps (branches of a captured graph,
// spans) does not. O(n log n) for n intervals, and at most a few edges each: where many join, a node of no length does it.
// Owned by one report; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "plumb/execgraph.hpp"

namespace plumb::analysis {

class ProgramOrder {
  public:
    struct Item {
        std::int64_t begin_ns = 0;
        std::int64_t end_ns = 0;
        NodeId node = no_node;
        NodeId last = no_node; // of a part that is ordered in itself: what comes after `node` and everything between
    };

    ProgramOrder(ExecGraphBuilder& builder, NodeId parent) : builder_(builder), parent_(parent) {}

    /// In the order of their begins.
    void add(const Item& item) {
        settle(item.begin_ns);
        if (finished_.size() > most_edges) {
            join(item.begin_ns);
        }
        for (const Item& before : finished_) {
            builder_.depend(end_of(before), item.node);
        }
        running_.push(item);
    }

  private:
    static constexpr std::size_t most_edges = 4;

    struct EndsLater {
        bool operator()(const Item& a, const Item& b) const { return a.end_ns > b.end_ns; }
    };

    static NodeId end_of(const Item& item) { return item.last == no_node ? item.node : item.last; }

    void settle(std::int64_t now) {
        bool changed = false;
        for (; !running_.empty() && running_.top().end_ns <= now; running_.pop(), changed = true) {
            const Item& ended = running_.top();
            finished_.push_back(ended);
            if (latest_.node == no_node || ended.begin_ns > latest_.begin_ns ||
                (ended.begin_ns == latest_.begin_ns && ended.node > latest_.node)) {
                latest_ = ended;
            }
        }
        if (!changed) {
            return;
        }
        // The latest one already waits for all that had ended before it.
        finished_.erase(std::remove_if(finished_.begin(), finished_.end(),
                                       [this](const Item& item) {
                                           return item.node != latest_.node && item.end_ns <= latest_.begin_ns;
                                       }),
                        finished_.end());
    }

    void join(std::int64_t now) {
        GraphNode node;
        node.name = builder_.name("join");
        node.begin_ns = now;
        node.parent = parent_;
        const NodeId joined = builder_.add(node);
        for (const Item& before : finished_) {
            builder_.depend(end_of(before), joined);
        }
        finished_.assign(1, {latest_.begin_ns, now, joined, no_node});
        latest_ = finished_.front();
    }

    ExecGraphBuilder& builder_;
    NodeId parent_;
    std::priority_queue<Item, std::vector<Item>, EndsLater> running_;
    std::vector<Item> finished_; // and not yet behind another finished one
    Item latest_;                // of the finished ones, by begin
};

} // namespace plumb::analysis
