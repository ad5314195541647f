// SPDX-License-Identifier: Apache-2.0
// The tracks of a recording by dense index, each with the line that turns its ticks into time. Built once per
// resolution; constant afterwards, except that tracks met without a description are added (bounded).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "recording/run_facts.hpp"
#include "resolve/tick_conversion.hpp"

namespace plumb::resolve {

inline constexpr std::size_t no_track = ~std::size_t{0};

/// What a live run has cleared: track id -> sequence below which records only move the state on. Empty: nothing.
using Cut = std::map<std::uint32_t, std::uint64_t>;

struct Track {
    recording::TrackInfo info;
    bool described = true;
    const TickConversion* line = nullptr; // null: its clock cannot be fitted
    std::uint64_t cut = 0;                // records below this sequence yield nothing
};

class TrackTable {
  public:
    static constexpr std::size_t max_tracks = 65536;

    TrackTable(const recording::RunFacts& facts, const Cut& cut);

    /// Dense index of a track id; an id nobody described gets an index too, until there are too many (no_track).
    [[nodiscard]] std::size_t index_of(std::uint32_t id);
    /// no_track for an id that nobody described.
    [[nodiscard]] std::size_t find(std::uint32_t id) const {
        const auto found = index_.find(id);
        return found == index_.end() ? no_track : found->second;
    }
    [[nodiscard]] const Track& operator[](std::size_t index) const { return tracks_[index]; }
    [[nodiscard]] std::size_t size() const noexcept { return tracks_.size(); }

    /// False: the recording is of a writer that did not say which submission began which device scope. Found by the first pass.
    [[nodiscard]] bool tells_launches() const noexcept { return tells_launches_; }
    void set_tells_launches(bool tells) noexcept { tells_launches_ = tells; }

    /// A track whose first record has this number begins behind records that max_size= or keep= removed: what they cut was old.
    [[nodiscard]] bool records_removed() const { return records_removed_; } // by a limit, from the beginning on
    [[nodiscard]] bool begins_behind_removed(std::uint64_t sequence) const { return records_removed_ && sequence != 0; }

    /// The clock of the host tracks, or why it has no line.
    [[nodiscard]] const Result<TickConversion>& host_line() const { return lines_.at(0); }
    /// Why clocks that tracks refer to could not be fitted.
    [[nodiscard]] std::vector<std::string> complaints() const;

  private:
    const TickConversion* line_of(const recording::RunFacts& facts, std::uint32_t clock);

    std::unordered_map<std::uint32_t, Result<TickConversion>> lines_; // by clock id
    std::unordered_map<std::uint32_t, std::size_t> index_;
    std::deque<Track> tracks_; // addresses stay
    bool tells_launches_ = true, records_removed_ = false;
};

} // namespace plumb::resolve
