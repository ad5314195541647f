// SPDX-License-Identifier: Apache-2.0
// The last seconds of a recording that grows, and the same readers over them that `plumb report` and `plumb wall` are made of: as if
// totals had been reset at the begin of the window and the run had ended at its end. Owned by one view; one thread.
// Memory: places of the last minute, and the records of the window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/wall_report.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"
#include "recording/follower.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/resolve.hpp"
#include "resolve/track_table.hpp"

namespace plumb::top {

/// What the readers say of one span.
struct Account {
    Report report;
    WallReport wall; // empty, with the reason beside it, where it could not be made
    std::string no_wall;
    std::optional<double> seconds; // length of the window; absent: all of the run
    bool removed = false;          // max_size= or keep= removed some of what would be in that span
    std::size_t records = 0;       // in the chunks that were looked at for it
};

/// Of a whole recording, the ring of a dead writer merged.
[[nodiscard]] Result<Account> account_of(const recording::RecordedRun& run, const resolve::ResolveOptions& options);

class Window {
  public:
    /// Records lie in a ring for so long before they are written, those of one thread longer than those of another: what is younger
    /// is not looked at yet, since work of other threads may still be missing from it.
    static constexpr std::int64_t settling_ns = 1'200'000'000;
    static constexpr double longest = 60, shortest = 0.05; // seconds

    void add(std::vector<recording::Follower::Chunk> chunks, const recording::RunFacts& facts);
    /// The last `seconds`, or fewer where that is more than `most_records`. `ended`: nothing will come any more.
    [[nodiscard]] Result<Account> read(recording::Follower& follower, double seconds, std::size_t most_records,
                                       bool ended);
    /// When the last chunk was written, on CLOCK_MONOTONIC; 0: not known.
    [[nodiscard]] std::int64_t newest_ns() const { return newest_ns_; }

  private:
    struct Held {
        recording::Follower::Chunk chunk;
        std::int64_t since_ns = 0;   // none of its records was made before
        std::vector<Record> records; // empty: not decoded
        /// Whether it may hold records of that time.
        [[nodiscard]] bool reaches(std::int64_t begin_ns, std::int64_t end_ns) const {
            return chunk.place.written_ns >= begin_ns && since_ns <= end_ns;
        }
    };
    /// What is looked at: whole batches, and where they are cut.
    struct Selection {
        std::vector<recording::RecordBatch> batches;
        resolve::Cut cut;
    };

    [[nodiscard]] std::size_t records_of(std::int64_t begin_ns, std::int64_t end_ns) const;
    void decode(recording::Follower& follower, std::int64_t begin_ns, std::int64_t end_ns);
    [[nodiscard]] Selection select(const recording::RunFacts& facts, std::int64_t begin_ns, std::int64_t end_ns) const;

    std::deque<Held> held_;
    struct Written { // the last chunk of a track
        std::int64_t at_ns = 0, since_ns = 0;
        std::int64_t margin_ns = 0; // what the next one holds was made so much before this one was written, at most
        std::uint64_t end = 0;      // number of the next record
        bool full = false;
    };
    void note_removed(const std::vector<recording::Follower::Chunk>& chunks, const recording::RunFacts& facts);
    [[nodiscard]] std::int64_t since(const recording::RecordPlace& place, const recording::RunFacts& facts);

    std::unordered_map<std::uint32_t, Written> written_; // by track
    bool forgot_ = false;                                // something older than what is held
    std::optional<std::int64_t> whole_from_ns_;          // max_size= or keep= removed what was written before
    std::int64_t newest_ns_ = 0;
};

} // namespace plumb::top
