// SPDX-License-Identifier: Apache-2.0
#include "layers/alignment.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

namespace plumb {
namespace {

constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max() / 2;
constexpr std::size_t kinds_of_anchors = static_cast<std::size_t>(LayerAnchor::sampling) + 1;
constexpr std::size_t columns_between_looks = 1024; // at the wish to stop

constexpr AlignmentCosts costs;

/// How the cheapest way came to stand before a slot.
enum class Came : std::uint8_t { insert, take, skip, border, midway };
/// How it came to a border between two copies, or to the outside; the index says from which unit or slot.
enum class Via : std::uint8_t { take, skip, outside, border, slot };

struct Origin {
    Via via = Via::outside;
    std::uint32_t index = 0;
};

/// To stand before a slot.
struct UnitSlot {
    std::uint32_t unit = 0;
    LayerAnchor anchor = LayerAnchor::none;
    bool first = false, last = false; // slot of the unit
};

/// A state on a way. Those without a cell cost as much as to enter them midway here: all that leads there costs no less.
struct Cell {
    std::uint32_t state = 0;
    Came came = Came::insert;
    std::int32_t cost = never;
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
            std::span<const RepeatUnit> units)
        : symbols_(symbols), anchors_(anchors), units_(units) {
        std::uint32_t names = 0;
        for (const std::uint32_t symbol : symbols) {
            names = std::max(names, symbol + 1);
        }
        row_of_.resize(names);
        named_.resize(1);
        for (const RepeatUnit& unit : units) {
            first_.push_back(static_cast<std::uint32_t>(states_.size()));
            for (std::size_t slot = 0; slot < unit.slots.size(); ++slot) {
                const auto state = static_cast<std::uint32_t>(states_.size());
                for (const std::uint32_t name : unit.slots[slot]) {
                    if (name < names) {
                        if (row_of_[name] == 0) {
                            row_of_[name] = static_cast<std::uint32_t>(named_.size());
                            named_.emplace_back();
                        }
                        named_[row_of_[name]].push_back(state);
                    }
                }
                if (unit.anchors[slot] != LayerAnchor::none) {
                    alike_[static_cast<std::size_t>(unit.anchors[slot])].push_back(state);
                }
                states_.push_back({static_cast<std::uint32_t>(first_.size() - 1), unit.anchors[slot], slot == 0,
                                   slot + 1 == unit.slots.size()});
            }
        }
        matches_.resize(named_.size() * states_.size());
        for (std::size_t row = 0; row < named_.size(); ++row) {
            for (const std::uint32_t state : named_[row]) {
                matches_[row * states_.size() + state] = 1;
            }
        }
    }

    Alignment run(const std::atomic<bool>* stop) {
        to_border_.resize(symbols_.size() + 1);
        to_outside_.resize(symbols_.size() + 1);
        for (const std::uint32_t first : first_) {
            cells_.push_back({.state = first});
        }
        settle(0);
        for (std::size_t i = 0; i < symbols_.size(); ++i) {
            if (i % columns_between_looks == 0 && stop != nullptr && stop->load(std::memory_order_relaxed)) {
                return {};
            }
            consume(i);
            settle(i + 1);
        }
        return walk();
    }

  private:
    std::uint32_t last_of(std::size_t unit) const {
        return first_[unit] + static_cast<std::uint32_t>(units_[unit].slots.size()) - 1;
    }

    bool matches(std::size_t i, std::uint32_t state) const {
        return matches_[row_of_[symbols_[i]] * states_.size() + state] != 0;
    }
    std::int32_t take(std::size_t i, std::uint32_t state) const {
        return matches(i, state)                      ? 0
               : anchors_[i] != states_[state].anchor ? costs.another_anchor
               : anchors_[i] == LayerAnchor::none     ? costs.substitute
                                                      : costs.same_anchor;
    }

    /// The cheaper of two ways to one state, the first of two that cost the same.
    void reach(const Cell& cell) {
        if (!cells_.empty() && cells_.back().state == cell.state) {
            cells_.back() = cell.cost < cells_.back().cost ? cell : cells_.back();
        } else if (cell.cost <= most_ || states_[cell.state].first) {
            cells_.push_back(cell);
        }
    }

    void consume(std::size_t i) {
        const std::int32_t before = outside_;
        outside_ += costs.outside;
        to_outside_[i + 1] = {Via::outside, 0};
        std::int32_t least = outside_;
        for (const Cell& cell : cells_) {
            least = std::min(least, cell.cost + std::min(take(i, cell.state), costs.insert) + costs.midway);
        }
        most_ = least + costs.midway;
        // Where a way goes on, to begin anew costs no less behind a symbol than before it.
        anew_.clear();
        if (least > before + costs.same_anchor) {
            const std::vector<std::uint32_t>&named = named_[row_of_[symbols_[i]]],
                  &alike = alike_[static_cast<std::size_t>(anchors_[i])];
            std::set_union(named.begin(), named.end(), alike.begin(), alike.end(), std::back_inserter(anew_));
        } else if (least > before) {
            anew_ = named_[row_of_[symbols_[i]]];
        }
        std::swap(cells_, before_);
        cells_.clear();
        border_ = never;
        const auto go_on = [this, i](std::uint32_t state, std::int32_t cost) {
            cost += take(i, state);
            if (!states_[state].last) {
                reach({state + 1, Came::take, cost});
            } else if (cost < border_) {
                border_ = cost;
                to_border_[i + 1] = {Via::take, states_[state].unit};
            }
        };
        auto next = anew_.begin();
        for (const Cell& cell : before_) {
            for (; next != anew_.end() && *next < cell.state; ++next) {
                go_on(*next, before + costs.midway);
            }
            next += next != anew_.end() && *next == cell.state ? 1 : 0;
            reach({cell.state, Came::insert, cell.cost + (states_[cell.state].first ? costs.between : costs.insert)});
            go_on(cell.state, cell.cost);
        }
        for (; next != anew_.end(); ++next) {
            go_on(*next, before + costs.midway);
        }
    }

    /// Skipped slots, where that costs less than `most`.
    void skip_slots(std::int32_t most) {
        std::swap(cells_, before_);
        cells_.clear();
        const auto skip_to = [this, most](std::size_t end) {
            while (!cells_.empty() && cells_.back().state + 1 < end && !states_[cells_.back().state].last &&
                   cells_.back().cost + costs.skip < most) {
                cells_.push_back({cells_.back().state + 1, Came::skip, cells_.back().cost + costs.skip});
            }
        };
        for (const Cell& cell : before_) {
            skip_to(cell.state);
            const bool skipped = !states_[cell.state].first && !cells_.empty() &&
                                 cells_.back().state + 1 == cell.state && cells_.back().cost + costs.skip < cell.cost;
            reach(skipped ? Cell{cell.state, Came::skip, cells_.back().cost + costs.skip} : cell);
        }
        skip_to(states_.size());
    }

    /// What needs no symbol: skipped slots, borders, the way out and in. Twice, as a skip may lead over a border.
    void settle(std::size_t column) {
        for (int round = 0; round < 2; ++round) {
            skip_slots(round == 0 ? most_ + 1 : most_); // to enter midway goes before the second
            for (const Cell& cell : cells_) {
                if (states_[cell.state].last && cell.cost + costs.skip < border_) {
                    border_ = cell.cost + costs.skip;
                    to_border_[column] = {Via::skip, states_[cell.state].unit};
                }
                if (cell.cost + costs.midway < outside_) {
                    outside_ = cell.cost + costs.midway;
                    to_outside_[column] = {Via::slot, cell.state};
                }
            }
            if (border_ + costs.border < outside_) {
                outside_ = border_ + costs.border;
                to_outside_[column] = {Via::border, 0};
            }
            if (outside_ + costs.border < border_) {
                border_ = outside_ + costs.border;
                to_border_[column] = {Via::outside, 0};
            }
            for (Cell& cell : cells_) {
                if (states_[cell.state].first && border_ < cell.cost) {
                    cell.cost = border_;
                    cell.came = Came::border;
                }
            }
            most_ = outside_ + costs.midway;
        }
        outside_at_.push_back(outside_);
        for (const Cell& cell : cells_) {
            const bool as_well = cell.cost == most_ && began_before(column, cell.state);
            came_.push_back(cell.state << 3 | static_cast<std::uint32_t>(as_well ? Came::take : cell.came));
        }
        came_end_.push_back(came_.size());
    }

    /// Of ways that cost the same, the one that took a symbol goes before all others: also one that began anew before it.
    bool began_before(std::size_t column, std::uint32_t state) const {
        return column > 0 && !states_[state].first && find(column - 1, state - 1) == nullptr &&
               outside_at_[column - 1] + take(column - 1, state - 1) == outside_at_[column];
    }

    const std::uint32_t* find(std::size_t column, std::uint32_t state) const {
        const auto begin = came_.begin() + static_cast<std::ptrdiff_t>(column == 0 ? 0 : came_end_[column - 1]);
        const auto end = came_.begin() + static_cast<std::ptrdiff_t>(came_end_[column]);
        const auto found = std::lower_bound(begin, end, state << 3);
        return found != end && *found >> 3 == state ? &*found : nullptr;
    }
    Came came(std::size_t column, std::uint32_t state) const {
        const std::uint32_t* found = find(column, state);
        return found != nullptr              ? static_cast<Came>(*found & 7U)
               : began_before(column, state) ? Came::take
                                             : Came::midway;
    }

    Alignment walk() const {
        enum class At : std::uint8_t { slot, border, outside } at = At::outside;
        std::uint32_t state = 0;
        std::size_t column = symbols_.size();
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
                way.push_back({origin.via == Via::take ? Stride::Kind::take : Stride::Kind::skip, state, column});
            } else {
                switch (came(column, state)) {
                case Came::insert:
                    --column;
                    way.push_back({Stride::Kind::insert, state, column});
                    break;
                case Came::take:
                    --state;
                    --column;
                    way.push_back({Stride::Kind::take, state, column});
                    break;
                case Came::skip:
                    --state;
                    way.push_back({Stride::Kind::skip, state, column});
                    break;
                case Came::border:
                    way.push_back({Stride::Kind::begin, state, column});
                    at = At::border;
                    break;
                case Came::midway:
                    way.push_back({Stride::Kind::begin_midway, state, column});
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
            const std::size_t unit = states_[stride.state].unit;
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
                copy.matched += matches(stride.position, stride.state) ? 1 : 0;
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
    std::vector<UnitSlot> states_;
    std::vector<std::uint32_t> first_;                                // states, of units
    std::vector<std::uint32_t> row_of_;                               // by symbol; the first row: no unit has it
    std::vector<std::vector<std::uint32_t>> named_;                   // by row: states before slots of that name
    std::array<std::vector<std::uint32_t>, kinds_of_anchors> alike_;  // by anchor: states before slots that are such
    std::vector<std::uint8_t> matches_;                               // row x state
    std::vector<Cell> cells_, before_;                                // by state; of first slots always
    std::vector<std::uint32_t> anew_;                                 // states without a cell from which a way goes on
    std::int32_t border_ = never, outside_ = 0, most_ = costs.midway; // a cell that costs more than most_ is none
    std::vector<std::uint32_t> came_;                                 // of all cells, state and Came
    std::vector<std::size_t> came_end_;                               // by column, in came_
    std::vector<std::int32_t> outside_at_;                            // by column
    std::vector<Origin> to_border_, to_outside_;                      // by column
};

} // namespace

Alignment align(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                std::span<const RepeatUnit> units, const std::atomic<bool>* stop) {
    return Aligner(symbols, anchors, units).run(stop);
}

} // namespace plumb
