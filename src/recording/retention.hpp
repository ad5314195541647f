// SPDX-License-Identifier: Apache-2.0
// Which chunks of records and checks a bounded recording may let go, and what the rest still needs of them. Owned by one writer.
// Invariant: chunks are kept in file order, and always a suffix of them stays.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "recording/metadata_codec.hpp"
#include "recording/recording.hpp"
#include "recording/store.hpp"

namespace plumb::recording {

/// Every second of the older half goes until no more than so many are left: readings of what only grows, of which the ends and a
/// few between are enough.
template <class T>
void thin_out(std::vector<T>& all, std::size_t most) {
    while (all.size() > most) {
        std::size_t kept = 0;
        for (std::size_t i = 0, size = all.size(); i < size; ++i) {
            if (i % 2 == 0 || i >= size / 2) {
                std::swap(all[kept++], all[i]);
            }
        }
        all.resize(kept);
    }
}
/// So many of them are enough for a fit.
inline constexpr std::size_t most_clock_pairs = 4096;
void thin_clock_pairs(std::vector<ClockPair>& pairs);

class Retention {
  public:
    struct Chunk {
        ByteRange place;
        bool checks = false; // of tensors; they belong to no track
        std::uint32_t track = 0;
        std::uint64_t first_sequence = 0;
        std::uint32_t count = 0;
        std::int64_t written_ns = 0;
        std::vector<Record> work; // the last work record of each name and quantity in it
    };

    Retention(std::uint64_t max_bytes, std::int64_t keep_ns) : max_bytes_(max_bytes), keep_ns_(keep_ns) {}

    [[nodiscard]] bool bounded() const { return max_bytes_ != 0 || keep_ns_ != 0; }
    /// Whether the recording must be shortened before `more` bytes are added to its `size`. `now_ns` is when records last came.
    [[nodiscard]] bool due(std::uint64_t size, std::uint64_t more, std::int64_t now_ns) const;
    void add(Chunk chunk) { chunks_.push_back(std::move(chunk)); }

    /// The track gets no more records: what is known of it goes with its last chunk.
    void end_track(std::uint32_t track) { ended_.insert(track); }

    /// How many of the oldest chunks to remove; with max_bytes, chunks of `budget` bytes may stay.
    [[nodiscard]] std::size_t removable(std::uint64_t budget, std::int64_t now_ns) const;
    /// What removing the `n` oldest leaves behind: totals, and the work records still in force, by track.
    struct Outcome {
        std::map<std::uint32_t, Removal> removals; // of all forgotten tracks together: track 0, which is nobody's
        std::set<std::uint32_t> forgotten;         // tracks that ended and have no chunk left
        std::uint64_t checks_removed = 0;          // all below this number
        std::map<std::uint32_t, std::map<std::pair<std::uint16_t, std::uint64_t>, Record>> carried;
        [[nodiscard]] std::uint64_t records() const; // removed so far
    };
    [[nodiscard]] Outcome after_removing(std::size_t n) const;
    [[nodiscard]] std::vector<ByteRange> kept_after(std::size_t n) const;
    /// The chunks were removed; the first that stays now lies at `offset`.
    void removed(std::size_t n, Outcome outcome, std::uint64_t offset);
    [[nodiscard]] std::uint64_t records_removed() const { return so_far_.records(); }
    /// When the oldest chunk was written; 0 without one.
    [[nodiscard]] std::int64_t oldest_ns() const { return chunks_.empty() ? 0 : chunks_.front().written_ns; }

    /// The last work record of each name and quantity, in order of appearance.
    [[nodiscard]] static std::vector<Record> work_of(const Record* records, std::size_t count);

  private:
    std::uint64_t max_bytes_;
    std::int64_t keep_ns_;
    std::deque<Chunk> chunks_;
    std::set<std::uint32_t> ended_;
    std::uint64_t shortened_to_ = 0; // bytes
    Outcome so_far_;
};

} // namespace plumb::recording
