// SPDX-License-Identifier: Apache-2.0
#include "recording/tile_codec.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace plumb::recording {
namespace {

constexpr std::size_t entry_size = 64;
constexpr std::size_t size_head = sizeof(std::uint32_t); // size of an entry: later versions may append to it

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

double work_of(std::uint64_t bits) {
    const auto value = std::bit_cast<double>(bits);
    return std::isfinite(value) && value >= 0 ? value : std::numeric_limits<double>::quiet_NaN();
}

bool sound(const TileTotals& tile) {
    const auto level = static_cast<std::size_t>(tile_level_of(tile.key));
    return level >= 1 && level <= tile_levels && tile.count != 0 && tile.min <= tile.max && tile.max <= tile.total &&
           tile.calm <= tile.total;
}

} // namespace

void TileMap::add(const TileTotals& totals) {
    const bool full = tiles_.size() >= most_tiles && tiles_.find(totals.key) == tiles_.end();
    const TileKey key = full ? tile_overflow_key(tile_level_of(totals.key)) : totals.key;
    const auto [place, fresh] = tiles_.try_emplace(key, totals);
    if (fresh) {
        place->second.key = key;
        return;
    }
    TileTotals& have = place->second;
    have.count = sum(have.count, totals.count);
    have.total = sum(have.total, totals.total);
    have.calm = sum(have.calm, totals.calm);
    have.min = std::min(have.min, totals.min);
    have.max = std::max(have.max, totals.max);
    have.bytes += totals.bytes;
    have.flops += totals.flops;
}

bool TileMap::set(const TileTotals& totals) {
    // The three levels' overflow cells always have room.
    const bool overflow = totals.key == tile_overflow_key(tile_level_of(totals.key));
    if (!overflow && tiles_.size() >= most_tiles && tiles_.find(totals.key) == tiles_.end()) {
        return false;
    }
    tiles_.insert_or_assign(totals.key, totals);
    return true;
}

const TileTotals* TileMap::find(TileKey key) const {
    const auto found = tiles_.find(key);
    return found == tiles_.end() ? nullptr : &found->second;
}

std::vector<TileTotals> TileMap::sorted() const {
    std::vector<TileTotals> list;
    list.reserve(tiles_.size());
    for (const auto& [key, totals] : tiles_) {
        list.push_back(totals);
    }
    std::sort(list.begin(), list.end(), [](const TileTotals& a, const TileTotals& b) { return a.key < b.key; });
    return list;
}

void encode_tiles(const TileTotals* from, std::size_t count, Bytes& to) {
    append_le(to, static_cast<std::uint32_t>(entry_size));
    for (std::size_t i = 0; i < count; ++i) {
        for (const std::uint64_t word :
             {from[i].key, from[i].count, from[i].total, from[i].calm, from[i].min, from[i].max,
              std::bit_cast<std::uint64_t>(from[i].bytes), std::bit_cast<std::uint64_t>(from[i].flops)}) {
            append_le(to, word);
        }
    }
}

bool decode_tiles(const std::byte* payload, std::size_t size, std::uint32_t count,
                  const std::function<void(const TileTotals&)>& take) {
    if (size < size_head) {
        return false;
    }
    const std::size_t step = load_le<std::uint32_t>(payload);
    if (step < entry_size || (size - size_head) % step != 0 || (size - size_head) / step != count) {
        return false;
    }
    bool whole = true;
    for (const std::byte* at = payload + size_head; at != payload + size; at += step) {
        const auto word = [at](std::size_t index) {
            return load_le<std::uint64_t>(at + index * sizeof(std::uint64_t));
        };
        const TileTotals tile{word(0), word(1), word(2), word(3), word(4), word(5), work_of(word(6)), work_of(word(7))};
        if (sound(tile)) {
            take(tile);
        } else {
            whole = false;
        }
    }
    return whole;
}

} // namespace plumb::recording
