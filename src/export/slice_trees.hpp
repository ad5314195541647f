// SPDX-License-Identifier: Apache-2.0
// Slices as they come, children first, in the order in which a stack of begins and ends has them: parents first. What neither
// nests nor follows goes to a lane of its own. Held until flush(), which the owner calls when nothing that began before can still
// come; what comes later all the same, too. Owned by one exporter call; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace plumb::exporting {

/// `Slice` has begin_ns and end_ns.
template <class Slice>
class SliceTrees {
  public:
    static constexpr std::size_t max_lanes = 4096;

    /// begin(lane, slice, parent) and end(lane, slice), in each lane in the order of time; parent is null where nothing of the
    /// lane is around it.
    template <class Begin, class End>
    void flush(Begin&& begin, End&& end) {
        give_trees(begin, end);
        trees_.clear();
        give_rest(begin, end);
        rest_.clear();
    }

    void add(const Slice& slice) {
        std::vector<std::uint32_t>& roots = trees_.roots;
        std::vector<Node>& nodes = trees_.nodes;
        std::size_t first = roots.size();
        // A slice of no length at the very begin is a neighbour, as the resolver has it.
        while (first > 0 && nodes[roots[first - 1]].slice.begin_ns >= slice.begin_ns &&
               nodes[roots[first - 1]].slice.end_ns <= slice.end_ns &&
               nodes[roots[first - 1]].slice.end_ns != slice.begin_ns) {
            --first;
        }
        if (slice.begin_ns < until_ || (first > 0 && nodes[roots[first - 1]].slice.end_ns > slice.begin_ns)) {
            rest_.push_back(slice);
            return;
        }
        Node node{slice, none, none};
        for (std::size_t i = roots.size(); i > first; --i) {
            nodes[roots[i - 1]].next = std::exchange(node.first_child, roots[i - 1]);
        }
        roots.resize(first);
        roots.push_back(static_cast<std::uint32_t>(nodes.size()));
        nodes.push_back(node);
    }

    [[nodiscard]] std::size_t size() const { return trees_.nodes.size() + rest_.size(); }
    /// What found no lane so far.
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

  private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    struct Node {
        Slice slice;
        std::uint32_t first_child, next;
    };
    struct Trees {
        std::vector<Node> nodes;
        std::vector<std::uint32_t> roots; // in the order of time, apart
        void clear() {
            nodes.clear();
            roots.clear();
        }
    };

    template <class Begin, class End>
    void give_trees(Begin&& begin, End&& end) {
        constexpr std::size_t lane = 0;
        std::vector<std::uint32_t>& open = open_; // whose children are being given
        for (const std::uint32_t root : trees_.roots) {
            std::uint32_t at = root;
            while (true) {
                const Node& node = trees_.nodes[at];
                begin(lane, node.slice, open.empty() ? nullptr : &trees_.nodes[open.back()].slice);
                if (node.first_child != none) {
                    open.push_back(at);
                    at = node.first_child;
                    continue;
                }
                end(lane, node.slice);
                while (trees_.nodes[at].next == none && !open.empty()) {
                    at = open.back();
                    open.pop_back();
                    end(lane, trees_.nodes[at].slice);
                }
                if (at == root) {
                    break;
                }
                at = trees_.nodes[at].next;
            }
            until_ = trees_.nodes[root].slice.end_ns;
        }
    }

    /// Each slice inside the shortest that is open and holds it, else into the lane that became free last before it.
    template <class Begin, class End>
    void give_rest(Begin&& begin, End&& end) {
        if (rest_.empty()) {
            return;
        }
        std::reverse(rest_.begin(), rest_.end()); // of two that are alike, the later is around the other
        std::stable_sort(rest_.begin(), rest_.end(), [](const Slice& a, const Slice& b) {
            return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
        });
        std::set<LaneEnd> innermost; // of lanes that are not free
        const auto end_those_until = [&](std::int64_t now_ns) {
            while (!innermost.empty() && innermost.begin()->first <= now_ns) {
                const auto [end_ns, lane] = innermost.extract(innermost.begin()).value();
                std::vector<const Slice*>& within = within_[lane];
                end(lane, *within.back());
                within.pop_back();
                within.empty() ? free_.emplace(end_ns, lane) : innermost.emplace(within.back()->end_ns, lane);
            }
        };
        for (const Slice& slice : rest_) {
            end_those_until(slice.begin_ns);
            std::size_t lane = within_.size();
            if (const auto around = innermost.lower_bound({slice.end_ns, 0}); around != innermost.end()) {
                lane = innermost.extract(around).value().second;
            } else if (const auto later = free_.upper_bound({slice.begin_ns, max_lanes}); later != free_.begin()) {
                lane = free_.extract(std::prev(later)).value().second;
            } else if (lane == max_lanes) {
                ++left_out_;
                continue;
            } else {
                within_.emplace_back();
            }
            begin(lane, slice, within_[lane].empty() ? nullptr : within_[lane].back());
            within_[lane].push_back(&slice);
            innermost.emplace(slice.end_ns, lane);
        }
        end_those_until(std::numeric_limits<std::int64_t>::max());
    }

    Trees trees_;
    std::vector<Slice> rest_; // of other lanes
    std::vector<std::uint32_t> open_;
    std::int64_t until_ = std::numeric_limits<std::int64_t>::min(); // the first lane is written
    using LaneEnd = std::pair<std::int64_t, std::size_t>;
    std::set<LaneEnd> free_; // of the others, and until when each is written
    /// What is open, by lane; the first has none.
    std::vector<std::vector<const Slice*>> within_{std::vector<const Slice*>()};
    std::uint64_t left_out_ = 0;
};

} // namespace plumb::exporting
