// SPDX-License-Identifier: Apache-2.0
#include "layers/repeats.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "layers/lags.hpp"

namespace plumb {
namespace {

constexpr std::size_t most_lags = 4, most_odd_copies = 4, most_units = 4, most_rounds = 3;
constexpr std::size_t most_looked_at = 16384; // symbols: units of a longer sequence are looked for in parts of it
constexpr std::size_t most_at_once = 262144;  // symbols of one alignment, about 100 MiB
constexpr std::size_t copies_laid_again = 4;
constexpr std::size_t least_changes = 3, most_alike = 2; // of copies that may be of another unit
constexpr double good_copy = 0.75;                       // this share of its slots matches
constexpr double most_savings = 0.9;                     // a shorter unit that saves this share of the best is better
constexpr std::int64_t cost_of_a_slot = 5, cost_of_a_name = 10; // what a longer unit, or one with more names, must save

bool is_mlp(LayerAnchor anchor) { return anchor == LayerAnchor::mlp || anchor == LayerAnchor::router; }

bool holds_attention(const RepeatUnit& unit) {
    return std::find(unit.anchors.begin(), unit.anchors.end(), LayerAnchor::attention) != unit.anchors.end();
}

template <class T>
using Counts = std::map<T, std::size_t>;

template <class T>
T most_of(const Counts<T>& counts) {
    return std::max_element(counts.begin(), counts.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
}

template <class T>
std::size_t sum_of(const Counts<T>& counts) {
    std::size_t sum = 0;
    for (const auto& [value, count] : counts) {
        sum += count;
    }
    return sum;
}

/// What stands in a slot of all copies, or after it in those that have a kernel more.
struct Column {
    Counts<std::uint32_t> names;
    Counts<LayerAnchor> anchors;
};

class UnitFinder {
  public:
    UnitFinder(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
               const std::atomic<bool>* stop)
        : symbols_(symbols), anchors_(anchors), stop_(stop) {}

    Repeats run() const {
        Repeats found = laid({});
        while (found.units.size() < most_units) {
            std::optional<Repeats> more = with_one_more(found);
            if (!more) {
                break;
            }
            found = std::move(*more);
        }
        // Where some units hold attention, the others are no layers.
        if (std::any_of(found.units.begin(), found.units.end(), holds_attention)) {
            std::vector<RepeatUnit> units = found.units;
            std::erase_if(units, [](const RepeatUnit& unit) { return !holds_attention(unit); });
            if (units.size() < found.units.size()) {
                found = laid(std::move(units));
            }
        }
        return found;
    }

  private:
    Repeats laid(std::vector<RepeatUnit> units) const {
        Repeats repeats;
        repeats.alignment = align(symbols_, anchors_, units, stop_);
        repeats.units = std::move(units);
        return repeats;
    }

    static std::int64_t cost_of(const Repeats& repeats) {
        std::int64_t cost = repeats.alignment.cost;
        for (const RepeatUnit& unit : repeats.units) {
            for (const std::vector<std::uint32_t>& names : unit.slots) {
                cost += cost_of_a_slot + cost_of_a_name * (static_cast<std::int64_t>(names.size()) - 1);
            }
        }
        return cost;
    }

    RepeatUnit unit_at(std::size_t begin, std::size_t end) const {
        RepeatUnit unit;
        for (std::size_t i = begin; i < end; ++i) {
            unit.slots.push_back({symbols_[i]});
            unit.anchors.push_back(anchors_[i]);
        }
        return unit;
    }

    /// A copy with all that lies before the next.
    void add_unit_of(const std::vector<UnitCopy>& copies, std::size_t c, std::vector<RepeatUnit>& units) const {
        if (c + 1 < copies.size()) {
            const std::size_t length = copies[c + 1].begin - copies[c].begin;
            if (length >= shortest_unit && length <= longest_unit) {
                units.push_back(unit_at(copies[c].begin, copies[c + 1].begin));
            }
        }
    }

    /// In which ways a copy differs from the usual one of its unit: slot, and the name there or after it.
    using Change = std::tuple<std::size_t, std::size_t, bool, std::uint32_t>;
    std::vector<Change> changes_of(const Repeats& found, std::size_t c) const {
        const UnitCopy& copy = found.alignment.copies[c];
        std::vector<Change> changes;
        std::size_t next = copy.begin;
        for (std::size_t slot = 0; slot < copy.slots.size(); ++slot) {
            if (!copy.slots[slot]) {
                changes.emplace_back(copy.unit, slot, false, no_symbol);
                continue;
            }
            for (; next < *copy.slots[slot]; ++next) {
                changes.emplace_back(copy.unit, slot, true, symbols_[next]);
            }
            ++next;
            if (const std::uint32_t name = symbols_[*copy.slots[slot]];
                name != found.units[copy.unit].slots[slot].front()) {
                changes.emplace_back(copy.unit, slot, false, name);
            }
        }
        return changes;
    }

    /// The copies whose changes most others have too: they may be of another unit of about the same length.
    std::vector<std::size_t> alike_but_odd(const Repeats& found) const {
        std::vector<std::vector<Change>> changes;
        Counts<Change> seen;
        for (std::size_t c = 0; c < found.alignment.copies.size(); ++c) {
            changes.push_back(changes_of(found, c));
            for (const Change& change : changes.back()) {
                ++seen[change];
            }
        }
        std::map<std::vector<Change>, std::pair<std::size_t, std::size_t>>
            alike; // how much others have of them, and the first
        for (std::size_t c = 0; c < changes.size(); ++c) {
            std::size_t shared = 0;
            for (const Change& change : changes[c]) {
                shared += seen[change] - 1;
            }
            if (changes[c].size() >= least_changes && shared >= least_changes) {
                alike.try_emplace(changes[c], shared, c);
            }
        }
        std::vector<std::pair<std::size_t, std::size_t>> best;
        for (const auto& [key, copy] : alike) {
            best.push_back(copy);
        }
        std::sort(best.begin(), best.end(), std::greater<>());
        best.resize(std::min(best.size(), most_alike));
        std::vector<std::size_t> copies;
        for (const auto& [shared, c] : best) {
            copies.push_back(c);
        }
        return copies;
    }

    /// What may be a unit: stretches that repeat where no good copy lies, and copies that are unlike their unit.
    std::vector<RepeatUnit> seeds(const Repeats& found) const {
        std::vector<std::uint32_t> rest(symbols_.begin(), symbols_.end());
        std::vector<RepeatUnit> units;
        const std::vector<UnitCopy>& copies = found.alignment.copies;
        for (std::size_t c = 0; c < copies.size(); ++c) {
            if (!copies[c].midway && copies[c].share() >= good_copy) {
                std::fill(rest.begin() + static_cast<std::ptrdiff_t>(copies[c].begin),
                          rest.begin() + static_cast<std::ptrdiff_t>(copies[c].end), no_symbol);
            } else if (units.size() < most_odd_copies) {
                add_unit_of(copies, c, units);
            }
        }
        for (const std::size_t c : alike_but_odd(found)) {
            add_unit_of(copies, c, units);
        }
        std::vector<std::size_t> lags = likely_lags(rest);
        lags.resize(std::min(lags.size(), most_lags));
        for (const std::size_t lag : lags) {
            const std::size_t begin = best_stretch(rest, lag);
            units.push_back(unit_at(begin, begin + lag));
        }
        return units;
    }

    /// The units of `found` and one more: the shortest of those that save about as much as the best.
    std::optional<Repeats> with_one_more(const Repeats& found) const {
        const bool anchored = std::any_of(found.units.begin(), found.units.end(), holds_attention);
        const std::int64_t before = cost_of(found);
        std::vector<Repeats> candidates;
        std::int64_t most_saved = 0;
        std::vector<RepeatUnit> tried;
        for (RepeatUnit& seed : seeds(found)) {
            if (std::find(tried.begin(), tried.end(), seed) != tried.end()) {
                continue;
            }
            tried.push_back(seed);
            std::vector<RepeatUnit> units = found.units;
            units.push_back(std::move(seed));
            Repeats next = refined(laid(std::move(units)));
            if (anchored && !holds_attention(next.units.back())) {
                continue;
            }
            most_saved = std::max(most_saved, before - cost_of(next));
            candidates.push_back(std::move(next));
        }
        std::optional<Repeats> best;
        for (Repeats& candidate : candidates) {
            const std::int64_t saved = before - cost_of(candidate);
            if (saved <= 0 || static_cast<double>(saved) < most_savings * static_cast<double>(most_saved)) {
                continue;
            }
            const std::size_t length = candidate.units.back().slots.size();
            if (!best || length < best->units.back().slots.size() ||
                (length == best->units.back().slots.size() && saved > before - cost_of(*best))) {
                best = std::move(candidate);
            }
        }
        return best;
    }

    Repeats refined(Repeats next) const {
        next = turned(std::move(next));
        bool better = true;
        for (std::size_t round = 0; round < most_rounds && better; ++round) {
            better = false;
            for (std::size_t index = next.units.size(); index-- > 0;) { // the new one first
                std::vector<RepeatUnit> units = next.units;
                units[index] = refined(next, index);
                if (units[index] == next.units[index]) {
                    continue;
                }
                if (Repeats other = laid(std::move(units)); cost_of(other) < cost_of(next)) {
                    next = std::move(other);
                    better = true;
                }
            }
        }
        return turned(std::move(next));
    }

    /// A unit as most of its copies have it: other names of a slot, without slots that most lack, with kernels that most have.
    RepeatUnit refined(const Repeats& repeats, std::size_t index) const {
        const RepeatUnit& unit = repeats.units[index];
        std::vector<Column> columns(unit.slots.size()), besides(unit.slots.size());
        std::size_t copies = 0;
        const auto count = [this](Column& column, std::size_t i) {
            ++column.names[symbols_[i]];
            ++column.anchors[anchors_[i]];
        };
        const std::vector<UnitCopy>& all = repeats.alignment.copies;
        for (std::size_t c = 0; c < all.size(); ++c) {
            const UnitCopy& copy = all[c];
            if (copy.unit != index || copy.midway) {
                continue;
            }
            ++copies;
            const bool foreign_after = c + 1 < all.size() && all[c + 1].begin == copy.end && all[c + 1].slots.front() &&
                                       *all[c + 1].slots.front() > copy.end;
            if (foreign_after) {
                count(besides.back(), copy.end);
            }
            for (std::size_t slot = 0; slot < copy.slots.size(); ++slot) {
                if (!copy.slots[slot]) {
                    continue;
                }
                const std::size_t i = *copy.slots[slot];
                count(columns[slot], i);
                const bool foreign =
                    i + 1 < copy.end && (slot + 1 == copy.slots.size() || copy.slots[slot + 1] != i + 1);
                if (foreign) {
                    count(besides[slot], i + 1);
                }
            }
        }
        RepeatUnit better;
        for (std::size_t slot = 0; slot < unit.slots.size(); ++slot) {
            const std::size_t present = sum_of(columns[slot].names);
            if (present > 0 && 2 * present >= copies) {
                std::vector<std::uint32_t> names = {most_of(columns[slot].names)};
                for (const auto& [name, seen] : columns[slot].names) {
                    if (name != names.front() && seen >= 3 && 5 * seen >= present) {
                        names.push_back(name);
                    }
                }
                better.slots.push_back(std::move(names));
                better.anchors.push_back(most_of(columns[slot].anchors));
            }
            if (!besides[slot].names.empty() && 2 * besides[slot].names[most_of(besides[slot].names)] > copies) {
                better.slots.push_back({most_of(besides[slot].names)});
                better.anchors.push_back(most_of(besides[slot].anchors));
            }
        }
        return better.slots.size() < shortest_unit ? unit : better;
    }

    /// Every unit from where a layer begins; where no anchor says so, from where the first copy does.
    Repeats turned(Repeats repeats) const {
        bool any = false;
        for (std::size_t index = 0; index < repeats.units.size(); ++index) {
            RepeatUnit& unit = repeats.units[index];
            const std::size_t size = unit.slots.size(), entry = first_slot(repeats.alignment, index);
            std::size_t start = entry, wait = size;
            for (const std::size_t candidate : layer_starts(unit.anchors)) {
                if (const std::size_t after = (candidate + size - entry) % size; after < wait) {
                    wait = after;
                    start = candidate;
                }
            }
            any = any || start != 0;
            std::rotate(unit.slots.begin(), unit.slots.begin() + static_cast<std::ptrdiff_t>(start), unit.slots.end());
            std::rotate(unit.anchors.begin(), unit.anchors.begin() + static_cast<std::ptrdiff_t>(start),
                        unit.anchors.end());
        }
        return any ? laid(std::move(repeats.units)) : repeats;
    }

    static std::size_t first_slot(const Alignment& alignment, std::size_t unit) {
        for (const UnitCopy& copy : alignment.copies) {
            if (copy.unit == unit) {
                const auto first = std::find_if(copy.slots.begin(), copy.slots.end(),
                                                [](const auto& slot) { return slot.has_value(); });
                return first == copy.slots.end() ? 0 : static_cast<std::size_t>(first - copy.slots.begin());
            }
        }
        return 0;
    }

    std::span<const std::uint32_t> symbols_;
    std::span<const LayerAnchor> anchors_;
    const std::atomic<bool>* stop_;
};

/// Parts of a sequence that are so long together, from its begin to its end.
template <class T>
std::vector<T> sample_of(std::span<const T> all) {
    constexpr std::size_t parts = 4, length = most_looked_at / parts;
    std::vector<T> sample;
    for (std::size_t part = 0; part < parts; ++part) {
        const std::span<const T> here = all.subspan((all.size() - length) * part / (parts - 1), length);
        sample.insert(sample.end(), here.begin(), here.end());
    }
    return sample;
}

/// Part by part, as an alignment has memory for each symbol. How the last copies of a part end is known with what follows alone: the
/// next part begins with them.
Alignment align_parts(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                      std::span<const RepeatUnit> units, const std::atomic<bool>* stop) {
    Alignment found;
    for (std::size_t begin = 0; begin < symbols.size();) {
        const std::size_t size = std::min(most_at_once, symbols.size() - begin);
        Alignment part = align(symbols.subspan(begin, size), anchors.subspan(begin, size), units, stop);
        std::size_t next = size;
        if (begin + size < symbols.size() && part.copies.size() > copies_laid_again) {
            const std::size_t kept = part.copies.size() - copies_laid_again;
            next = part.copies[kept].begin;
            part.copies.resize(kept);
        }
        for (UnitCopy& copy : part.copies) {
            copy.begin += begin;
            copy.end += begin;
            for (std::optional<std::size_t>& slot : copy.slots) {
                slot = slot ? std::optional(*slot + begin) : slot;
            }
            found.copies.push_back(std::move(copy));
        }
        found.cost += part.cost;
        begin += next;
    }
    return found;
}

} // namespace

std::vector<std::size_t> layer_starts(std::span<const LayerAnchor> slots) {
    const std::size_t size = slots.size();
    const bool any_mlp = std::any_of(slots.begin(), slots.end(), is_mlp);
    std::vector<std::size_t> starts;
    for (std::size_t attention = 0; attention < size; ++attention) {
        const auto before = [slots, attention, size](std::size_t back) {
            return slots[(attention + size - back) % size];
        };
        if (before(0) != LayerAnchor::attention) {
            continue;
        }
        // Backwards to the MLP, and on the way over a GEMM to a norm.
        std::size_t back = 1, norm = 0;
        bool gemm = false;
        for (; back < size && !is_mlp(before(back)) && before(back) != LayerAnchor::attention; ++back) {
            if (before(back) == LayerAnchor::norm && gemm && (norm == 0 || norm + 1 == back)) {
                norm = back;
            }
            gemm = gemm || before(back) == LayerAnchor::gemm;
        }
        if (any_mlp && (back == size || !is_mlp(before(back)))) {
            continue; // a second attention before the MLP
        }
        std::size_t begin = norm;
        for (std::size_t first = back; any_mlp && first-- > 1;) {
            if (before(first) == LayerAnchor::norm) {
                begin = first;
                break;
            }
        }
        if (begin != 0) {
            starts.push_back((attention + size - begin) % size);
        }
    }
    return starts;
}

Repeats find_repeats(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                     const std::atomic<bool>* stop) {
    if (symbols.size() <= most_looked_at) {
        return UnitFinder(symbols, anchors, stop).run();
    }
    const std::vector<std::uint32_t> names = sample_of(symbols);
    const std::vector<LayerAnchor> of_names = sample_of(anchors);
    Repeats found = UnitFinder(names, of_names, stop).run();
    found.alignment = align_parts(symbols, anchors, found.units, stop);
    return found;
}

} // namespace plumb
