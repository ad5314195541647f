// SPDX-License-Identifier: Apache-2.0
// Slices as they come, children first, in the order in which a stack of begins and ends has them: parents first. What neither
// nests nor follows goes to a lane of its own. Held until flush(), which the owner calls when nothing that began before can still
// come; what comes later all the same, too. Owned by one exporter call; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace plumb::exporting {

/// `Slice` has begin_ns and end_ns.
template <class Slice>
class SliceTrees {
  public:
    static constexpr std::size_t max_lanes = 4096;

    /// Lane by lane, begin(lane, slice, parent) and end(lane, slice) in the order of time; parent is null where nothing
    /// of the lane is around it.
    template <class Begin, class End>
    void flush(Begin&& begin, End&& end) {
        for (std::size_t lane = 0; size() != 0 && lane < max_lanes; ++lane) {
            give(lane, begin, end);
            trees_.clear();
            // In the order of their ends, as the next lane wants them.
            std::vector<Slice> rest;
            rest.swap(rest_);
            std::stable_sort(rest.begin(), rest.end(), [](const Slice& a, const Slice& b) {
                return a.end_ns != b.end_ns ? a.end_ns < b.end_ns : a.begin_ns > b.begin_ns;
            });
            until_ =
                lane + 1 < written_until_.size() ? written_until_[lane + 1] : std::numeric_limits<std::int64_t>::min();
            for (const Slice& slice : rest) {
                add(slice);
            }
        }
        left_out_ += size();
        trees_.clear();
        rest_.clear();
        until_ = written_until_.empty() ? std::numeric_limits<std::int64_t>::min() : written_until_[0];
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
    void give(std::size_t lane, Begin&& begin, End&& end) {
        written_until_.resize(std::max(written_until_.size(), lane + 1), std::numeric_limits<std::int64_t>::min());
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
            written_until_[lane] = trees_.nodes[root].slice.end_ns;
        }
    }

    Trees trees_;
    std::vector<Slice> rest_; // of other lanes
    std::vector<std::uint32_t> open_;
    std::vector<std::int64_t> written_until_; // by lane
    std::int64_t until_ = std::numeric_limits<std::int64_t>::min();
    std::uint64_t left_out_ = 0;
};

} // namespace plumb::exporting
