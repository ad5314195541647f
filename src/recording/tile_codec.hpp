// SPDX-License-Identifier: Apache-2.0
// Totals of tiles to and from bytes (docs/reference/plumb_format.md): entries of one size, so that a chunk never unfolds.
// Pure functions; no thread rule. Decoding takes hostile input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "recording/bytes.hpp"
#include "recording/recording.hpp"

namespace plumb::recording {

/// Of one chunk: 16,384 entries of 64 bytes are 1 MiB.
inline constexpr std::size_t most_tiles_of_chunk = 16384;
/// That a reader or writer holds; further tiles of a level are added up without row and column.
inline constexpr std::size_t most_tiles = 65536;

/// Tiles of one generation by key, never more than most_tiles kept apart.
class TileMap {
  public:
    /// Adds the calls of `totals` to those of the same key.
    void add(const TileTotals& totals);
    /// Replaces what is known of the key. False: there is no room for another one.
    bool set(const TileTotals& totals);
    [[nodiscard]] const TileTotals* find(TileKey key) const;
    void clear() { tiles_.clear(); }
    [[nodiscard]] std::size_t size() const { return tiles_.size(); }
    /// By key: level, name, row, column.
    [[nodiscard]] std::vector<TileTotals> sorted() const;

  private:
    std::unordered_map<TileKey, TileTotals> tiles_;
};

/// Appends the payload of a chunk.
void encode_tiles(const TileTotals* from, std::size_t count, Bytes& to);
/// Calls `take` with each entry. False when some are none: `count` is the header's.
[[nodiscard]] bool decode_tiles(const std::byte* payload, std::size_t size, std::uint32_t count,
                                const std::function<void(const TileTotals&)>& take);

} // namespace plumb::recording
