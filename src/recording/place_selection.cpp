// SPDX-License-Identifier: Apache-2.0
#include "recording/place_selection.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace plumb::recording {
namespace {

constexpr std::size_t none = ~std::size_t{0};

/// Warm-up is the first steps by the time of their ends, wherever in the file those are: all chunks that may hold one of them.
void select_first_steps(const std::vector<RecordPlace>& all, std::uint64_t wanted, std::vector<bool>& chosen) {
    std::uint64_t steps = 0, until = 0;
    for (std::size_t i = 0; i < all.size() && steps < wanted; ++i) {
        if (all[i].bounds.decode_steps != 0) {
            chosen[i] = true;
            steps += all[i].bounds.decode_steps;
            until = std::max(until, all[i].bounds.last_ticks);
        }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const ChunkBounds& bounds = all[i].bounds;
        chosen[i] = chosen[i] || (wanted != 0 && bounds.decode_steps != 0 && bounds.first_ticks < until);
    }
}

} // namespace

std::optional<SelectedPlaces> select_places(const std::vector<RecordPlace>& all, const StepRanges& steps,
                                            std::uint64_t first_decode_steps,
                                            const std::vector<std::uint32_t>& continued) {
    std::vector<bool> chosen(all.size());
    select_first_steps(all, first_decode_steps, chosen);
    std::vector<std::size_t> before(all.size(), none); // the chunk of its track before it
    std::unordered_map<std::uint32_t, std::size_t> last;
    for (std::size_t i = 0; i < all.size(); ++i) {
        const ChunkBounds& bounds = all[i].bounds;
        const bool holds = bounds.first_step_plus_one != 0 &&
                           steps.meets(bounds.first_step_plus_one - 1, bounds.last_step_plus_one - 1);
        chosen[i] = chosen[i] || holds || all[i].bounds_size == 0;
        if (const auto [entry, first] = last.emplace(all[i].track, i); !first) {
            before[i] = std::exchange(entry->second, i);
        }
    }
    for (const std::uint32_t track : continued) {
        if (const auto found = last.find(track); found != last.end()) {
            chosen[found->second] = true;
        }
    }
    // Its carried records stand before all of a chunk, and behind all of the one before: nothing is there twice or missing.
    const auto may_begin = [&](std::size_t i) {
        const RecordPlace& earlier = all[before[i]];
        return all[i].bounds.entry && all[i].skip == 0 &&
               earlier.first_sequence + earlier.count == all[i].first_sequence;
    };
    for (std::size_t i = all.size(); i > 0; --i) {
        if (chosen[i - 1] && before[i - 1] != none && !may_begin(i - 1)) {
            chosen[before[i - 1]] = true;
        }
    }
    if (std::find(chosen.begin(), chosen.end(), false) == chosen.end()) {
        return std::nullopt;
    }
    SelectedPlaces selected;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (chosen[i]) {
            selected.places.push_back(all[i]);
            selected.begins_anew.push_back(before[i] != none && !chosen[before[i]]);
        }
    }
    return selected;
}

} // namespace plumb::recording
