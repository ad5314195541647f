// SPDX-License-Identifier: Apache-2.0
// Adds up the tables of tiles of all threads, and hands the sums to the writer as they grow.
// Owned and used by the drain thread, or by whoever keeps it between rounds.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "plumb/result.hpp"
#include "record/ring_set.hpp"
#include "recording/tile_codec.hpp"
#include "recording/writer.hpp"

namespace plumb::drain {

class TileLedger {
  public:
    /// A thread ended: takes over what is in its table, and leaves the table empty.
    void take_ended(record::Ring& ring);
    /// Writes the totals that grew since the last time. Threads go on meanwhile: a cell that is being written just now keeps its
    /// last value until the next time.
    Status write(const std::vector<std::shared_ptr<record::Ring>>& rings, recording::Writer& writer);
    /// reset(): from now on only tables of that generation count.
    void start_over(std::uint32_t generation);

  private:
    [[nodiscard]] TileKey place_of(TileKey key);
    void add_table(record::Ring& ring, recording::TileMap& to);
    void add_cell(const detail::TileCell& cell, recording::TileMap& to);

    std::unordered_set<TileKey> apart_; // the first ones seen; the others are added up by level, and stay so
    std::vector<TileKey> torn_;         // being written in this round
    recording::TileMap ended_;          // of threads that ended
    recording::TileMap written_;        // as the recording has it
    std::uint32_t generation_ = 1;
    bool told_ = true; // the recording knows of the generation; nothing before its first tile
};

} // namespace plumb::drain
