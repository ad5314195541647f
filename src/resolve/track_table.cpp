// SPDX-License-Identifier: Apache-2.0
#include "resolve/track_table.hpp"

#include <algorithm>

namespace plumb::resolve {

TrackTable::TrackTable(const recording::RunFacts& facts, const Cut& cut)
    : records_removed_(facts.counters.records_removed != 0) {
    (void)line_of(facts, 0);
    for (const recording::TrackInfo& info : facts.tracks) {
        if (tracks_.size() == max_tracks) {
            break;
        }
        if (!index_.emplace(info.id, tracks_.size()).second) {
            continue;
        }
        tracks_.push_back({info, true, line_of(facts, info.clock), 0});
    }
    for (const auto& [id, sequence] : cut) {
        const auto found = index_.find(id);
        if (found != index_.end()) {
            tracks_[found->second].cut = sequence;
        }
    }
}

const TickConversion* TrackTable::line_of(const recording::RunFacts& facts, std::uint32_t clock) {
    auto found = lines_.find(clock);
    if (found == lines_.end()) {
        found = lines_.emplace(clock, fit_ticks(facts.clock_pairs, clock)).first;
    }
    return found->second.ok() ? &found->second.value() : nullptr;
}

std::size_t TrackTable::index_of(std::uint32_t id) {
    const auto found = index_.find(id);
    if (found != index_.end()) {
        return found->second;
    }
    if (tracks_.size() == max_tracks) {
        return no_track;
    }
    recording::TrackInfo info;
    info.id = id;
    info.name = "track " + std::to_string(id);
    index_.emplace(id, tracks_.size());
    tracks_.push_back({info, false, nullptr, 0});
    return tracks_.size() - 1;
}

std::vector<std::string> TrackTable::complaints() const {
    std::vector<std::string> sentences;
    for (const auto& [clock, line] : lines_) {
        if (std::string sentence = line.ok() ? line->jumped() : line.error().message; !sentence.empty()) {
            sentences.push_back(std::move(sentence));
        }
    }
    std::sort(sentences.begin(), sentences.end());
    return sentences;
}

} // namespace plumb::resolve
