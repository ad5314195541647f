// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/stamp_plan.hpp"

#include <algorithm>

namespace plumb::cudagraph {

namespace {

constexpr std::size_t fewest = 16;
constexpr std::size_t aside = 5; // head, tail and the second stamps of the three empty pairs

struct Range {
    std::uint32_t first = 0;
    std::uint32_t last = 0; // inclusive, shared with the next
};

class Planner {
  public:
    Planner(const std::vector<StampPlace>& places, const std::vector<ScopePlaces>& scopes, std::size_t most)
        : places_(places), scopes_(scopes), most_(std::max(most, fewest)) {
        find_used();
        std::uint32_t number = 0;
        part_of_.assign(places.size(), no_index);
        for (std::uint32_t i = 0; i < places.size(); ++i) {
            if (used_[i] && places[i].in_line) {
                part_of_[i] = number++;
            }
        }
        plans_.parts = number; // each begins one: the last one's ends at the tail
        order_by_end();
    }

    StampPlans run() {
        const std::vector<Range> ranges = cut_into_ranges();
        std::vector<std::uint32_t> left; // scopes that no range holds
        std::vector<std::vector<std::uint32_t>> members(ranges.size());
        for (const std::uint32_t scope : by_end_) {
            const std::size_t home = home_of(scopes_[scope], ranges);
            if (home < ranges.size()) {
                members[home].push_back(scope);
            } else {
                left.push_back(scope);
            }
        }
        for (std::size_t i = 0; i < left.size(); ++i) {
            members[i % ranges.size()].push_back(left[i]);
        }
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            plans_.turns.push_back(plan_of(ranges[i], members[i]));
        }
        return std::move(plans_);
    }

  private:
    [[nodiscard]] std::uint32_t tail() const { return static_cast<std::uint32_t>(places_.size() - 1); }

    void find_used() {
        used_.assign(places_.size(), false);
        new_layer_.assign(places_.size(), false);
        std::uint16_t layer = 0;
        for (const ScopePlaces& scope : scopes_) {
            if (scope.begin == scope.end) {
                continue;
            }
            used_[scope.begin] = used_[scope.end] = true;
            new_layer_[scope.begin] = new_layer_[scope.begin] || scope.layer_plus_one != layer;
            layer = scope.layer_plus_one;
        }
        used_[0] = used_[tail()] = true;
    }

    /// Scopes begin before what is inside them: by the last scope inside first is children before parents.
    void order_by_end() {
        std::vector<std::uint32_t> open;
        for (std::uint32_t i = 0; i < scopes_.size(); ++i) {
            while (!open.empty() && !inside(i, open.back())) {
                finish(open);
            }
            open.push_back(i);
        }
        while (!open.empty()) {
            finish(open);
        }
    }
    void finish(std::vector<std::uint32_t>& open) {
        if (scopes_[open.back()].begin != scopes_[open.back()].end) {
            by_end_.push_back(open.back());
        }
        open.pop_back();
    }
    [[nodiscard]] bool inside(std::uint32_t scope, std::uint32_t outer) const { return scopes_[scope].parent == outer; }

    [[nodiscard]] std::vector<Range> cut_into_ranges() const {
        std::vector<std::uint32_t> used;
        for (std::uint32_t i = 0; i < places_.size(); ++i) {
            if (used_[i]) {
                used.push_back(i);
            }
        }
        if (used.size() + aside <= most_) {
            return {Range{0, tail()}};
        }
        std::vector<Range> ranges;
        const std::size_t longest = most_ - aside;
        for (std::size_t first = 0; first + 1 < used.size();) {
            const std::size_t end = std::min(first + longest - 1, used.size() - 1);
            const std::size_t last = end == used.size() - 1 ? end : best_cut(used, first, end);
            ranges.push_back(Range{used[first], used[last]});
            first = last;
        }
        return ranges;
    }

    /// Where a layer begins, if such a place is not too far back; else any place in line.
    [[nodiscard]] std::size_t best_cut(const std::vector<std::uint32_t>& used, std::size_t first,
                                       std::size_t end) const {
        std::size_t in_line = first;
        for (std::size_t i = end; i > first; --i) {
            if (!places_[used[i]].in_line) {
                continue;
            }
            if (new_layer_[used[i]] && i >= first + (end - first) / 2) {
                return i;
            }
            in_line = std::max(in_line, i);
        }
        return in_line > first ? in_line : end;
    }

    [[nodiscard]] static std::size_t home_of(const ScopePlaces& scope, const std::vector<Range>& ranges) {
        const auto home = std::lower_bound(ranges.begin(), ranges.end(), scope.end,
                                           [](const Range& range, std::uint32_t end) { return range.last < end; });
        const bool fits = home != ranges.end() && scope.begin >= home->first && scope.end <= home->last;
        return fits ? static_cast<std::size_t>(home - ranges.begin()) : ranges.size();
    }

    [[nodiscard]] StampPlan plan_of(const Range& range, const std::vector<std::uint32_t>& members) const {
        std::vector<std::uint32_t> wanted{0, tail(), range.first, range.last};
        for (const std::uint32_t scope : members) {
            wanted.push_back(scopes_[scope].begin);
            wanted.push_back(scopes_[scope].end);
        }
        std::sort(wanted.begin(), wanted.end());
        wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
        StampPlan plan;
        plan.scopes = members;
        std::vector<std::uint32_t> line; // planned stamps in line
        std::vector<std::uint32_t> levels;
        for (const std::uint32_t place : wanted) {
            const auto self = static_cast<std::uint32_t>(plan.stamps.size());
            const auto behind = std::lower_bound(levels.begin(), levels.end(), places_[place].level);
            const auto before = static_cast<std::size_t>(behind - levels.begin());
            plan.stamps.push_back(PlannedStamp{place, 1, before == 0 ? no_index : line[before - 1]});
            if (places_[place].in_line) {
                line.push_back(self);
                levels.push_back(places_[place].level);
            }
        }
        add_parts(plan, range);
        plan.stamps.front().copies = 2;
        if (plan.stamps.size() > 1) {
            plan.stamps.back().copies = 2;
        }
        if (line.size() > 2) {
            plan.stamps[line[line.size() / 2]].copies = 2;
        }
        return plan;
    }

    void add_parts(StampPlan& plan, const Range& range) const {
        for (std::uint32_t i = 1; i < plan.stamps.size(); ++i) {
            const std::uint32_t place = plan.stamps[i].place;
            const std::uint32_t anchor = plan.stamps[i].anchor;
            if (anchor == no_index || (!places_[place].in_line && place != tail())) {
                continue;
            }
            const std::uint32_t begin = plan.stamps[anchor].place;
            if (begin >= range.first && place <= range.last) {
                plan.parts.push_back(Part{anchor, i, part_of_[begin]});
            }
        }
    }

    const std::vector<StampPlace>& places_;
    const std::vector<ScopePlaces>& scopes_;
    std::size_t most_;
    std::vector<bool> used_;
    std::vector<bool> new_layer_;
    std::vector<std::uint32_t> part_of_; // per place in line: the part that begins there
    std::vector<std::uint32_t> by_end_;
    StampPlans plans_;
};

} // namespace

std::size_t StampPlan::cost_units() const {
    std::size_t units = 0;
    for (const PlannedStamp& stamp : stamps) {
        units += stamp.copies;
    }
    return units;
}

StampPlans plan_stamps(const std::vector<StampPlace>& places, const std::vector<ScopePlaces>& scopes,
                       std::size_t most) {
    return Planner(places, scopes, most).run();
}

} // namespace plumb::cudagraph
