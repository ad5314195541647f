// SPDX-License-Identifier: Apache-2.0
#include "layers/repeats.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>

namespace plumb {
namespace {

constexpr std::size_t shortest_unit = 3, longest_unit = 1024;
constexpr std::size_t votes_of_a_symbol = 6, lags_looked_at = 48, lags_aligned = 4, most_units = 4;
constexpr double good_copy = 0.75;              // this share of its slots matches
constexpr std::int64_t cost_of_a_slot = 3;     // what a longer unit must save
constexpr std::uint32_t nothing = UINT32_MAX;   // parts stretches: equals no symbol, nor itself

bool same(std::uint32_t a, std::uint32_t b) { return a == b && a != nothing; }

/// Distances between equal symbols, those first that most symbols have.
std::vector<std::size_t> voted_lags(std::span<const std::uint32_t> symbols) {
    std::vector<std::uint32_t> votes(std::min(longest_unit, symbols.size() / 2) + 1);
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> seen;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        if (symbols[i] == nothing) {
            continue;
        }
        std::vector<std::size_t>& last = seen[symbols[i]];
        for (const std::size_t before : last) {
            if (i - before < votes.size()) {
                ++votes[i - before];
            }
        }
        if (last.size() == votes_of_a_symbol) {
            last.erase(last.begin());
        }
        last.push_back(i);
    }
    std::vector<std::size_t> lags;
    for (std::size_t lag = shortest_unit; lag < votes.size(); ++lag) {
        if (votes[lag] != 0) {
            lags.push_back(lag);
        }
    }
    std::stable_sort(lags.begin(), lags.end(), [&votes](std::size_t a, std::size_t b) {
        return votes[a] > votes[b];
    });
    lags.resize(std::min(lags.size(), lags_looked_at));
    return lags;
}

/// What a lag explains: the length of its runs, which end where mismatches outweigh what went before.
std::size_t explained_by(std::span<const std::uint32_t> symbols, std::size_t lag) {
    const std::size_t end = symbols.size() - lag;
    const std::int64_t patience = std::max<std::int64_t>(4, static_cast<std::int64_t>(lag) / 2);
    std::size_t explained = 0;
    for (std::size_t i = 0; i < end; ++i) {
        if (!same(symbols[i], symbols[i + lag])) {
            continue;
        }
        std::int64_t score = 0, best = 0;
        std::size_t matches = 0, best_matches = 0, best_at = i;
        for (std::size_t k = i; k < end && best - score <= patience; ++k) {
            const bool match = same(symbols[k], symbols[k + lag]);
            score += match ? 1 : -2;
            matches += match ? 1 : 0;
            if (score > best) {
                best = score;
                best_at = k;
                best_matches = matches;
            }
        }
        if (2 * (best_at + 1 - i) >= lag) {
            explained += best_matches;
        }
        i = best_at;
    }
    return explained;
}

/// The stretch of one lag's length that has most in common with those before and after it.
RepeatUnit seed_of(std::span<const std::uint32_t> symbols, std::size_t lag) {
    const auto agree = [symbols, lag](std::size_t i) {
        return (i + lag < symbols.size() && same(symbols[i], symbols[i + lag]) ? 1 : 0) +
               (i >= lag && same(symbols[i], symbols[i - lag]) ? 1 : 0);
    };
    int score = 0, best = -1;
    std::size_t best_end = lag;
    for (std::size_t end = 0; end < symbols.size(); ++end) {
        score += agree(end) - (end >= lag ? agree(end - lag) : 0);
        if (end + 1 >= lag && score > best) {
            best = score;
            best_end = end + 1;
        }
    }
    RepeatUnit unit;
    for (std::size_t i = best_end - lag; i < best_end; ++i) {
        unit.slots.push_back({symbols[i]});
    }
    return unit;
}

/// The unit as most of its copies have it: other names of a slot, slots that most lack, and kernels that most have besides.
RepeatUnit refined(std::span<const std::uint32_t> symbols, std::size_t index, const RepeatUnit& unit,
                   const Alignment& alignment) {
    using Counts = std::map<std::uint32_t, std::size_t>;
    std::vector<Counts> names(unit.slots.size()), besides(unit.slots.size()); // besides: after the slot
    std::size_t copies = 0;
    for (const UnitCopy& copy : alignment.copies) {
        if (copy.unit != index || copy.midway) {
            continue;
        }
        ++copies;
        std::size_t slot = unit.slots.size() - 1, at = copy.begin;
        for (std::size_t i = copy.begin; i < copy.end; ++i) {
            const auto found = std::find(copy.slots.begin(), copy.slots.end(), std::optional(i));
            if (found != copy.slots.end()) {
                slot = static_cast<std::size_t>(found - copy.slots.begin());
                ++names[slot][symbols[i]];
                at = i;
            } else if (i == at + 1) {
                ++besides[slot][symbols[i]];
            }
        }
    }
    const auto most = [](const Counts& counts) {
        return std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
            return a.second < b.second;
        });
    };
    RepeatUnit better;
    for (std::size_t slot = 0; slot < unit.slots.size(); ++slot) {
        std::size_t present = 0;
        for (const auto& [name, count] : names[slot]) {
            present += count;
        }
        if (2 * present >= copies && present > 0) {
            std::vector<std::uint32_t> accepted = {most(names[slot])->first};
            for (const auto& [name, count] : names[slot]) {
                if (name != accepted.front() && name != nothing && count >= 2 && 5 * count >= present) {
                    accepted.push_back(name);
                }
            }
            better.slots.push_back(std::move(accepted));
        }
        if (!besides[slot].empty() && 2 * most(besides[slot])->second > copies) {
            better.slots.push_back({most(besides[slot])->first});
        }
    }
    return better.slots.size() < shortest_unit ? unit : better;
}

std::int64_t total_cost(const std::vector<RepeatUnit>& units, const Alignment& alignment) {
    std::int64_t cost = alignment.cost;
    for (const RepeatUnit& unit : units) {
        for (const std::vector<std::uint32_t>& slot : unit.slots) {
            cost += cost_of_a_slot * static_cast<std::int64_t>(slot.size());
        }
    }
    return cost;
}

/// The sequence where no good copy lies, stretches parted; everything where there is none.
std::vector<std::uint32_t> unexplained(std::span<const std::uint32_t> symbols, const Alignment& alignment) {
    std::vector<std::uint32_t> rest(symbols.begin(), symbols.end());
    for (const UnitCopy& copy : alignment.copies) {
        if (!copy.midway && copy.share() >= good_copy) {
            std::fill(rest.begin() + static_cast<std::ptrdiff_t>(copy.begin),
                      rest.begin() + static_cast<std::ptrdiff_t>(copy.end), nothing);
        }
    }
    rest.erase(std::unique(rest.begin(), rest.end(), [](std::uint32_t a, std::uint32_t b) {
        return a == nothing && b == nothing;
    }), rest.end());
    return rest;
}

bool is_mlp(LayerAnchor anchor) { return anchor == LayerAnchor::mlp || anchor == LayerAnchor::router; }

bool holds_attention(const std::vector<LayerAnchor>& unit) {
    return std::find(unit.begin(), unit.end(), LayerAnchor::attention) != unit.end();
}

/// What most copies have in the slots of each unit.
std::vector<std::vector<LayerAnchor>> anchors_of(const Repeats& repeats, std::span<const LayerAnchor> anchors) {
    std::vector<std::vector<std::map<LayerAnchor, std::size_t>>> counts;
    for (const RepeatUnit& unit : repeats.units) {
        counts.emplace_back(unit.slots.size());
    }
    for (const UnitCopy& copy : repeats.alignment.copies) {
        for (std::size_t slot = 0; slot < copy.slots.size(); ++slot) {
            if (copy.slots[slot]) {
                ++counts[copy.unit][slot][anchors[*copy.slots[slot]]];
            }
        }
    }
    std::vector<std::vector<LayerAnchor>> found;
    for (const auto& unit : counts) {
        found.emplace_back();
        for (const auto& slot : unit) {
            const auto most = std::max_element(slot.begin(), slot.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
            });
            found.back().push_back(most == slot.end() ? LayerAnchor::none : most->first);
        }
    }
    return found;
}

/// The slot in which most runs of whole copies begin.
std::size_t usual_entry(const Repeats& repeats, std::size_t unit) {
    for (const UnitCopy& copy : repeats.alignment.copies) {
        if (copy.unit == unit) {
            const auto first = std::find_if(copy.slots.begin(), copy.slots.end(), [](const auto& slot) {
                return slot.has_value();
            });
            return first == copy.slots.end() ? 0 : static_cast<std::size_t>(first - copy.slots.begin());
        }
    }
    return 0;
}

/// Every unit from where a layer begins.
void turn(Repeats& repeats, std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors) {
    const std::vector<std::vector<LayerAnchor>> of_units = anchors_of(repeats, anchors);
    bool rotated = false;
    for (std::size_t unit = 0; unit < repeats.units.size(); ++unit) {
        auto& slots = repeats.units[unit].slots;
        const std::size_t entry = usual_entry(repeats, unit);
        std::size_t start = entry, wait = slots.size();
        for (const std::size_t candidate : layer_starts(of_units[unit])) {
            if (const std::size_t after = (candidate + slots.size() - entry) % slots.size(); after < wait) {
                wait = after;
                start = candidate;
            }
        }
        rotated = rotated || start != 0;
        std::rotate(slots.begin(), slots.begin() + static_cast<std::ptrdiff_t>(start), slots.end());
    }
    if (rotated) {
        repeats.alignment = align(symbols, repeats.units);
    }
}

/// `units` and one more that lowers the cost most, if any does.
std::optional<Repeats> with_one_more(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors,
                                     const Repeats& found) {
    const std::vector<std::uint32_t> rest = unexplained(symbols, found.alignment);
    struct Candidate {
        std::size_t lag, explained;
    };
    std::vector<Candidate> candidates;
    for (const std::size_t lag : voted_lags(rest)) {
        if (const std::size_t explained = explained_by(rest, lag); explained >= lag) {
            candidates.push_back({lag, explained});
        }
    }
    std::stable_sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return a.explained > b.explained;
    });
    candidates.resize(std::min(candidates.size(), lags_aligned));
    const bool anchored = std::any_of(found.anchors.begin(), found.anchors.end(), holds_attention);
    std::optional<Repeats> best;
    for (const Candidate& candidate : candidates) {
        Repeats next = found;
        next.units.push_back(seed_of(rest, candidate.lag));
        next.alignment = align(symbols, next.units);
        turn(next, symbols, anchors);
        for (int round = 0; round < 3; ++round) {
            Repeats better = next;
            for (std::size_t index = 0; index < better.units.size(); ++index) {
                better.units[index] = refined(symbols, index, next.units[index], next.alignment);
            }
            better.alignment = align(symbols, better.units);
            if (total_cost(better.units, better.alignment) >= total_cost(next.units, next.alignment)) {
                break;
            }
            next = std::move(better);
        }
        turn(next, symbols, anchors);
        if (anchored && !holds_attention(anchors_of(next, anchors).back())) {
            continue;
        }
        if (!best || total_cost(next.units, next.alignment) < total_cost(best->units, best->alignment)) {
            best = std::move(next);
        }
    }
    if (!best || total_cost(best->units, best->alignment) >= total_cost(found.units, found.alignment)) {
        return std::nullopt;
    }
    return best;
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

Repeats find_repeats(std::span<const std::uint32_t> symbols, std::span<const LayerAnchor> anchors) {
    Repeats found;
    found.alignment = align(symbols, {});
    while (found.units.size() < most_units) {
        std::optional<Repeats> more = with_one_more(symbols, anchors, found);
        if (!more) {
            break;
        }
        found = std::move(*more);
        found.anchors = anchors_of(found, anchors);
    }
    // Where some units hold attention, the others are no layers.
    if (std::any_of(found.anchors.begin(), found.anchors.end(), holds_attention)) {
        for (std::size_t unit = found.units.size(); unit-- > 0;) {
            if (!holds_attention(found.anchors[unit])) {
                found.units.erase(found.units.begin() + static_cast<std::ptrdiff_t>(unit));
                found.anchors.erase(found.anchors.begin() + static_cast<std::ptrdiff_t>(unit));
            }
        }
        found.alignment = align(symbols, found.units);
    }
    return found;
}

} // namespace plumb
