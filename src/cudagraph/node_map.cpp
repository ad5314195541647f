// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/node_map.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace plumb::cudagraph {

namespace {

/// Edges by node, as two flat tables.
struct Adjacency {
    std::vector<std::uint32_t> first; // per node, and one more
    std::vector<std::uint32_t> edges;

    template <class NodeOf>
    Adjacency(std::size_t nodes, const std::vector<ShapeEdge>& all, NodeOf node_of)
        : first(nodes + 1, 0), edges(all.size()) {
        for (const ShapeEdge& edge : all) {
            ++first[node_of(edge) + 1];
        }
        for (std::size_t i = 0; i < nodes; ++i) {
            first[i + 1] += first[i];
        }
        std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            edges[next[node_of(all[i])]++] = i;
        }
    }
    [[nodiscard]] const std::uint32_t* begin(std::uint32_t node) const { return edges.data() + first[node]; }
    [[nodiscard]] const std::uint32_t* end(std::uint32_t node) const { return edges.data() + first[node + 1]; }
    [[nodiscard]] bool none(std::uint32_t node) const { return first[node] == first[node + 1]; }
};

/// One end of a scope on its stream.
struct Border {
    std::uint32_t scope = 0;
    bool is_end = false;
};

struct Lane {
    std::vector<Border> borders; // in the order in which they happened
    std::size_t next = 0;
    bool busy = false;
    std::vector<std::uint32_t> open; // scopes, outermost first
};

/// The borders of each stream in order: a scope ends when one begins that is not inside it.
std::vector<Lane> lanes_of(const std::vector<MappedScope>& scopes) {
    std::vector<Lane> lanes;
    for (std::uint32_t i = 0; i < scopes.size(); ++i) {
        lanes.resize(std::max<std::size_t>(lanes.size(), scopes[i].stream + std::size_t{1}));
        Lane& lane = lanes[scopes[i].stream];
        while (!lane.open.empty() && lane.open.back() != scopes[i].parent) {
            lane.borders.push_back(Border{lane.open.back(), true});
            lane.open.pop_back();
        }
        lane.borders.push_back(Border{i, false});
        lane.open.push_back(i);
    }
    for (Lane& lane : lanes) {
        for (; !lane.open.empty(); lane.open.pop_back()) {
            lane.borders.push_back(Border{lane.open.back(), true});
        }
    }
    return lanes;
}

class Mapper {
  public:
    Mapper(const GraphShape& shape, const std::vector<MappedScope>& scopes)
        : shape_(shape), scopes_(scopes),
          in_(shape.nodes.size(), shape.edges, [](const ShapeEdge& edge) { return edge.to; }),
          out_(shape.nodes.size(), shape.edges, [](const ShapeEdge& edge) { return edge.from; }),
          seen_(shape.nodes.size(), 0), level_(shape.nodes.size(), 0), hits_(shape.nodes.size(), 0),
          taken_(shape.edges.size(), false), lanes_(lanes_of(scopes)), begun_ever_(scopes.size(), false) {
        map_.owner.assign(shape.nodes.size(), no_index);
        map_.begin_place.assign(scopes.size(), 0);
        map_.end_place.assign(scopes.size(), 0);
        if (lanes_.size() > 1) {
            mark_borders();
        }
    }

    NodeMap run() {
        std::vector<std::uint32_t> sinks;
        for (std::uint32_t i = 0; i < shape_.nodes.size(); ++i) {
            if (in_.none(i)) {
                map_.roots.push_back(i);
            }
            if (out_.none(i)) {
                sinks.push_back(i);
            }
        }
        unseen_roots_ = map_.roots.size();
        StampPlace head;
        head.in_line = true;
        add(std::move(head));
        for (std::uint32_t i = 0; i < scopes_.size(); ++i) {
            Lane& lane = lanes_[scopes_[i].stream];
            while (!begun_ever_[i]) {
                pass(lane);
            }
        }
        for (Lane& lane : lanes_) {
            while (lane.next < lane.borders.size()) {
                pass(lane);
            }
        }
        const std::uint32_t tail = border(sinks, no_index);
        if (tail + 1 != map_.places.size()) {
            move_to_end(tail);
        }
        return std::move(map_);
    }

  private:
    void mark_borders() {
        marks_.resize(shape_.nodes.size());
        for (std::uint32_t stream = 0; stream < lanes_.size(); ++stream) {
            const std::vector<Border>& borders = lanes_[stream].borders;
            for (std::size_t at = 0; at < borders.size(); ++at) {
                const MappedScope& scope = scopes_[borders[at].scope];
                for (const std::uint32_t node : borders[at].is_end ? scope.end : scope.begin) {
                    marks_[node].emplace_back(stream, at);
                }
            }
        }
    }

    /// The next border of a stream; before it, those of other streams that lie behind its frontier.
    void pass(Lane& lane) {
        const Border at = lane.borders[lane.next];
        const std::vector<std::uint32_t>& frontier = at.is_end ? scopes_[at.scope].end : scopes_[at.scope].begin;
        if (lanes_.size() > 1) {
            lane.busy = true;
            for (const auto& [stream, position] : behind(frontier)) {
                while (!lanes_[stream].busy && lanes_[stream].next <= position) {
                    pass(lanes_[stream]);
                }
            }
            lane.busy = false;
        }
        ++lane.next;
        const std::uint32_t place = border(frontier, innermost(lane));
        if (at.is_end) {
            map_.end_place[at.scope] = place;
            lane.open.pop_back();
            begun_.erase(std::find(begun_.begin(), begun_.end(), at.scope));
        } else {
            map_.begin_place[at.scope] = place;
            lane.open.push_back(at.scope);
            begun_.push_back(at.scope);
            begun_ever_[at.scope] = true;
        }
    }

    /// Of this stream; else the one that another began last: the work was forked off from there.
    [[nodiscard]] std::uint32_t innermost(const Lane& lane) const {
        return !lane.open.empty() ? lane.open.back() : !begun_.empty() ? begun_.back() : no_index;
    }

    /// Borders that nobody has passed, at unseen nodes that `frontier` waits for.
    std::vector<std::pair<std::uint32_t, std::size_t>> behind(const std::vector<std::uint32_t>& frontier) {
        std::vector<std::pair<std::uint32_t, std::size_t>> found;
        std::vector<std::uint32_t> walked;
        const auto look = [&](std::uint32_t node) {
            if (seen_[node] == 0) {
                seen_[node] = 2;
                walked.push_back(node);
                for (const auto& mark : marks_[node]) {
                    if (lanes_[mark.first].next <= mark.second && !lanes_[mark.first].busy) {
                        found.push_back(mark);
                    }
                }
            }
        };
        std::for_each(frontier.begin(), frontier.end(), look);
        for (std::size_t i = 0; i < walked.size(); ++i) {
            for (const std::uint32_t* edge = in_.begin(walked[i]); edge != in_.end(walked[i]); ++edge) {
                look(shape_.edges[*edge].from);
            }
        }
        for (const std::uint32_t node : walked) {
            seen_[node] = 0;
        }
        return found;
    }

    std::uint32_t add(StampPlace place) {
        levels_ += place.in_line ? 1 : 0;
        map_.places.push_back(std::move(place));
        return static_cast<std::uint32_t>(map_.places.size() - 1);
    }

    /// Takes what this frontier reaches for `owner`; returns its place.
    std::uint32_t border(std::vector<std::uint32_t> frontier, std::uint32_t owner) {
        reach(frontier, owner);
        if (frontier.empty()) {
            return 0;
        }
        std::sort(frontier.begin(), frontier.end());
        frontier.erase(std::unique(frontier.begin(), frontier.end()), frontier.end());
        const auto known = known_.find(frontier);
        if (known != known_.end()) {
            return known->second;
        }
        StampPlace place;
        for (const std::uint32_t node : frontier) {
            place.level = std::max(place.level, level_[node]);
        }
        place.in_line = cuts(frontier, place.cut);
        place.after = frontier;
        const std::uint32_t index = add(std::move(place));
        known_.emplace(std::move(frontier), index);
        return index;
    }

    void reach(const std::vector<std::uint32_t>& frontier, std::uint32_t owner) {
        todo_.clear();
        for (const std::uint32_t node : frontier) {
            see(node, owner);
        }
        while (!todo_.empty()) {
            const std::uint32_t node = todo_.back();
            todo_.pop_back();
            for (const std::uint32_t* edge = in_.begin(node); edge != in_.end(node); ++edge) {
                see(shape_.edges[*edge].from, owner);
            }
        }
    }

    void see(std::uint32_t node, std::uint32_t owner) {
        if (seen_[node] != 0) {
            return;
        }
        seen_[node] = 1;
        level_[node] = levels_;
        map_.owner[node] = owner;
        todo_.push_back(node);
        if (in_.none(node)) {
            --unseen_roots_;
        }
        for (const std::uint32_t* edge = in_.begin(node); edge != in_.end(node); ++edge) {
            leaving_ -= seen_[shape_.edges[*edge].from] != 0 ? 1 : 0;
        }
        for (const std::uint32_t* edge = out_.begin(node); edge != out_.end(node); ++edge) {
            leaving_ += seen_[shape_.edges[*edge].to] == 0 ? 1 : 0;
        }
    }

    /// True when every edge from what was seen to what was not starts in `frontier`, is an ordinary one, holds no stamp yet
    /// (an edge that leaps over a node lies behind two places), and each node behind waits for the whole frontier: then a
    /// stamp fits between without any new dependency among the nodes.
    bool cuts(const std::vector<std::uint32_t>& frontier, std::vector<std::uint32_t>& cut) {
        bool full = true;
        for (const std::uint32_t node : frontier) {
            for (const std::uint32_t* edge = out_.begin(node); edge != out_.end(node); ++edge) {
                if (seen_[shape_.edges[*edge].to] == 0) {
                    cut.push_back(*edge);
                    ++hits_[shape_.edges[*edge].to];
                    full &= shape_.edges[*edge].full && !taken_[*edge];
                }
            }
        }
        for (const std::uint32_t edge : cut) {
            full &= hits_[shape_.edges[edge].to] == frontier.size();
        }
        for (const std::uint32_t edge : cut) {
            hits_[shape_.edges[edge].to] = 0;
        }
        const bool in_line = full && !cut.empty() && unseen_roots_ == 0 && cut.size() == leaving_;
        if (!in_line) {
            cut.clear();
        }
        std::for_each(cut.begin(), cut.end(), [&](std::uint32_t edge) { taken_[edge] = true; });
        return in_line;
    }

    /// The tail's frontier was seen before, by a scope that ends the graph; what came later are leaves.
    void move_to_end(std::uint32_t tail) {
        const auto last = static_cast<std::uint32_t>(map_.places.size() - 1);
        std::rotate(map_.places.begin() + tail, map_.places.begin() + tail + 1, map_.places.end());
        const auto moved = [&](std::uint32_t& place) {
            place = place == tail ? last : place > tail ? place - 1 : place;
        };
        std::for_each(map_.begin_place.begin(), map_.begin_place.end(), moved);
        std::for_each(map_.end_place.begin(), map_.end_place.end(), moved);
    }

    const GraphShape& shape_;
    const std::vector<MappedScope>& scopes_;
    Adjacency in_;
    Adjacency out_;
    std::vector<std::uint8_t> seen_;
    std::vector<std::uint32_t> level_; // per node: places in line that existed when it was reached
    std::vector<std::size_t> hits_;    // scratch
    std::vector<bool> taken_;          // per edge: a place in line is put into it
    std::vector<std::uint32_t> todo_;  // scratch
    std::vector<Lane> lanes_;          // per stream
    std::vector<bool> begun_ever_;
    std::vector<std::uint32_t> begun_; // open scopes of all streams, the last begun last
    std::vector<std::vector<std::pair<std::uint32_t, std::size_t>>> marks_; // per node: stream and border
    std::map<std::vector<std::uint32_t>, std::uint32_t> known_;
    std::size_t unseen_roots_ = 0;
    std::size_t leaving_ = 0; // edges from seen to unseen nodes
    std::uint32_t levels_ = 0;
    NodeMap map_;
};

} // namespace

NodeMap map_nodes(const GraphShape& shape, const std::vector<MappedScope>& scopes) {
    return Mapper(shape, scopes).run();
}

} // namespace plumb::cudagraph
