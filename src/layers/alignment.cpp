// SPDX-License-Identifier: Apache-2.0
#include "layers/alignment.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace plumb {
namespace {

constexpr std::size_t kinds_of_anchors = static_cast<std::size_t>(LayerAnchor::sampling) + 1;
constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max() / 2;

/// How the cheapest way came to stand before a slot.
enum class Came : std::uint8_t { insert, take, skip, border, midway };
/// How it came to a border between two copies, or to the outside; the index says from which unit or slot.
enum class Via : std::uint8_t { take, skip, outside, border, slot };

struct Origin {
    Via via = Via::outside;
    std::uint32_t index = 0;
};

/// One step of the way, as it is walked backwards. `position` is absent where nothing was consumed.
struct Stride {
    enum class Kind : std::uint8_t { take, insert, skip, begin, begin_midway, end_midway } kind = Kind::take;
    std::uint32_t state = 0;
    std::size_t position = 0;
};

class Aligner {
  public:
    Aligner(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
            std::span<const RepeatUnit> units, const AlignmentCosts& costs)
        : symbols_(symbols), anchors_(anchors), units_(units), costs_(costs) {
        for (const RepeatUnit& unit : units) {
            first_.push_back(static_cast<std::uint32_t>(unit_of_.size()));
            unit_of_.insert(unit_of_.end(), unit.slots.size(), static_cast<std::uint32_t>(first_.size() - 1));
        }
        states_ = unit_of_.size();
        std::uint32_t names = 0;
        for (const std::uint32_t symbol : symbols) {
            names = std::max(names, symbol + 1);
        }
        matches_.assign(names * states_, 0);
        for (std::size_t state = 0; state < states_; ++state) {
            const std::size_t unit = unit_of_[state];
            for (const std::uint32_t name : units[unit].slots[state - first_[unit]]) {
                if (name < names) {
                    matches_[name * states_ + state] = 1;
                }
            }
            const LayerAnchor here = units[unit].anchors[state - first_[unit]];
            for (std::size_t anchor = 0; anchor < kinds_of_anchors; ++anchor) {
                const bool same = here == static_cast<LayerAnchor>(anchor);
                mismatch_[anchor].push_back(!same                       ? costs.another_anchor
                                            : here == LayerAnchor::none ? costs.substitute
                                                                        : costs.same_anchor);
            }
        }
    }

    Alignment run() {
        came_.resize((symbols_.size() + 1) * states_);
        to_border_.resize(symbols_.size() + 1);
        to_outside_.resize(symbols_.size() + 1);
        cost_.assign(states_, never);
        next_.resize(states_);
        border_ = never;
        outside_ = 0;
        settle(0, cost_);
        for (std::size_t i = 0; i < symbols_.size(); ++i) {
            consume(i);
            settle(i + 1, next_);
            std::swap(cost_, next_);
        }
        return walk();
    }

  private:
    std::size_t last_of(std::size_t unit) const { return first_[unit] + units_[unit].slots.size() - 1; }

    void consume(std::size_t i) {
        Came* const came = came_.data() + (i + 1) * states_;
        const std::uint8_t* const match = matches_.data() + symbols_[i] * states_;
        const std::int32_t* const mismatch = mismatch_[static_cast<std::size_t>(anchors_[i])].data();
        std::int32_t border = never;
        for (std::size_t unit = 0; unit < units_.size(); ++unit) {
            const std::size_t first = first_[unit], last = last_of(unit);
            next_[first] = cost_[first] + costs_.between;
            came[first] = Came::insert;
            for (std::size_t state = first; state < last; ++state) {
                const std::int32_t take = cost_[state] + (match[state] != 0 ? 0 : mismatch[state]);
                const std::int32_t insert = cost_[state + 1] + costs_.insert;
                next_[state + 1] = std::min(take, insert);
                came[state + 1] = take <= insert ? Came::take : Came::insert;
            }
            const std::int32_t take = cost_[last] + (match[last] != 0 ? 0 : mismatch[last]);
            if (take < border) {
                border = take;
                to_border_[i + 1] = {Via::take, static_cast<std::uint32_t>(unit)};
            }
        }
        border_ = border;
        outside_ += costs_.outside;
        to_outside_[i + 1] = {Via::outside, 0};
    }

    /// What needs no symbol: skipped slots, borders, the way out and in. Twice, as a skip may lead over a border.
    void settle(std::size_t column, std::vector<std::int32_t>& cost) {
        Came* const came = came_.data() + column * states_;
        for (int round = 0; round < 2; ++round) {
            for (std::size_t unit = 0; unit < units_.size(); ++unit) {
                const std::size_t last = last_of(unit);
                for (std::size_t state = first_[unit]; state < last; ++state) {
                    if (cost[state] + costs_.skip < cost[state + 1]) {
                        cost[state + 1] = cost[state] + costs_.skip;
                        came[state + 1] = Came::skip;
                    }
                }
                if (cost[last] + costs_.skip < border_) {
                    border_ = cost[last] + costs_.skip;
                    to_border_[column] = {Via::skip, static_cast<std::uint32_t>(unit)};
                }
            }
            for (std::size_t state = 0; state < states_; ++state) {
                if (cost[state] + costs_.midway < outside_) {
                    outside_ = cost[state] + costs_.midway;
                    to_outside_[column] = {Via::slot, static_cast<std::uint32_t>(state)};
                }
            }
            if (border_ + costs_.border < outside_) {
                outside_ = border_ + costs_.border;
                to_outside_[column] = {Via::border, 0};
            }
            if (outside_ + costs_.border < border_) {
                border_ = outside_ + costs_.border;
                to_border_[column] = {Via::outside, 0};
            }
            for (const std::uint32_t first : first_) {
                if (border_ < cost[first]) {
                    cost[first] = border_;
                    came[first] = Came::border;
                }
            }
            for (std::size_t state = 0; state < states_; ++state) {
                if (outside_ + costs_.midway < cost[state]) {
                    cost[state] = outside_ + costs_.midway;
                    came[state] = Came::midway;
                }
            }
        }
    }

    Alignment walk() const {
        enum class At : std::uint8_t { slot, border, outside } at = At::outside;
        std::size_t state = 0, column = symbols_.size();
        Alignment found;
        found.cost = outside_; // a way ends outside: the end of the last copy is paid for
        std::vector<Stride> way;
        while (at != At::outside || column > 0) {
            if (at == At::outside) {
                const Origin origin = to_outside_[column];
                if (origin.via == Via::outside) {
                    --column;
                } else if (origin.via == Via::border) {
                    at = At::border;
                } else {
                    at = At::slot;
                    state = origin.index;
                    way.push_back({Stride::Kind::end_midway, origin.index, column});
                }
            } else if (at == At::border) {
                const Origin origin = to_border_[column];
                if (origin.via == Via::outside) {
                    at = At::outside;
                    continue;
                }
                at = At::slot;
                state = last_of(origin.index);
                column -= origin.via == Via::take ? 1 : 0;
                way.push_back({origin.via == Via::take ? Stride::Kind::take : Stride::Kind::skip,
                               static_cast<std::uint32_t>(state), column});
            } else {
                switch (came_[column * states_ + state]) {
                case Came::insert:
                    --column;
                    way.push_back({Stride::Kind::insert, static_cast<std::uint32_t>(state), column});
                    break;
                case Came::take:
                    --state;
                    --column;
                    way.push_back({Stride::Kind::take, static_cast<std::uint32_t>(state), column});
                    break;
                case Came::skip:
                    --state;
                    way.push_back({Stride::Kind::skip, static_cast<std::uint32_t>(state), column});
                    break;
                case Came::border:
                    way.push_back({Stride::Kind::begin, static_cast<std::uint32_t>(state), column});
                    at = At::border;
                    break;
                case Came::midway:
                    way.push_back({Stride::Kind::begin_midway, static_cast<std::uint32_t>(state), column});
                    at = At::outside;
                    break;
                }
            }
        }
        std::reverse(way.begin(), way.end());
        collect(way, found);
        return found;
    }

    void collect(const std::vector<Stride>& way, Alignment& found) const {
        for (const Stride& stride : way) {
            const std::size_t unit = unit_of_[stride.state];
            switch (stride.kind) {
            case Stride::Kind::begin:
            case Stride::Kind::begin_midway: {
                UnitCopy copy;
                copy.unit = unit;
                copy.begin = copy.end = stride.position;
                copy.slots.resize(units_[unit].slots.size());
                copy.midway = stride.kind == Stride::Kind::begin_midway;
                found.copies.push_back(std::move(copy));
                break;
            }
            case Stride::Kind::take: {
                UnitCopy& copy = found.copies.back();
                copy.slots[stride.state - first_[unit]] = stride.position;
                copy.matched += matches_[symbols_[stride.position] * states_ + stride.state];
                copy.end = stride.position + 1;
                break;
            }
            case Stride::Kind::insert:
                found.copies.back().end = stride.position + 1;
                break;
            case Stride::Kind::end_midway:
                found.copies.back().midway = true;
                break;
            case Stride::Kind::skip:
                break;
            }
        }
    }

    std::span<const std::uint32_t> symbols_;
    std::span<const LayerAnchor> anchors_;
    std::span<const RepeatUnit> units_;
    AlignmentCosts costs_;
    std::size_t states_ = 0;
    std::vector<std::uint32_t> first_, unit_of_; // of units and states: a state stands before a slot
    std::vector<std::uint8_t> matches_;          // symbol x state
    std::array<std::vector<std::int32_t>, kinds_of_anchors> mismatch_; // what another name costs in each state
    std::vector<std::int32_t> cost_, next_;
    std::int32_t border_ = 0, outside_ = 0;
    std::vector<Came> came_;
    std::vector<Origin> to_border_, to_outside_;
};

} // namespace

Alignment align(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                std::span<const RepeatUnit> units, const AlignmentCosts& costs) {
    return Aligner(symbols, anchors, units, costs).run();
}

} // namespace plumb
