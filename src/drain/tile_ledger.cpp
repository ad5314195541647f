// SPDX-License-Identifier: Apache-2.0
#include "drain/tile_ledger.hpp"

#include <algorithm>
#include <thread>

namespace plumb::drain {
namespace {

// A cell is written within some ten nanoseconds, unless its thread was put aside meanwhile.
constexpr int tries = 1000;

// So that they fit into a TileMap together with what is added up by level.
constexpr std::size_t most_apart = recording::most_tiles - tile_levels;

} // namespace

/// Where a tile is counted. What a map folds when it is full depends on who came first: a tile that was written apart before
/// would then count in both places.
TileKey TileLedger::place_of(TileKey key) {
    const TileKey overflow = tile_overflow_key(tile_level_of(key));
    if (key == overflow || apart_.find(key) != apart_.end()) {
        return key;
    }
    if (apart_.size() >= most_apart) {
        return overflow;
    }
    apart_.insert(key);
    return key;
}

void TileLedger::add_cell(const detail::TileCell& cell, recording::TileMap& to) {
    detail::TileCell::Copy copy;
    int left = tries;
    while (!cell.read(copy) && --left != 0) {
        if (left % 100 == 0) {
            std::this_thread::yield();
        }
    }
    if (left == 0) {
        torn_.push_back(place_of(cell.key.load(std::memory_order_relaxed)));
    } else if (copy.count != 0) {
        to.add({place_of(copy.key), copy.count, copy.total, copy.calm, copy.min, copy.max, copy.bytes, copy.flops});
    }
}

void TileLedger::add_table(record::Ring& ring, recording::TileMap& to) {
    const detail::TileTable* table = ring.tiles();
    // Acquire: a table of the generation asked for was emptied before. One that lags behind holds nothing since the reset.
    if (table == nullptr || table->generation.load(std::memory_order_acquire) != generation_) {
        return;
    }
    const std::uint32_t used = table->used.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < used; ++i) {
        add_cell(table->cells[table->order[i]], to);
    }
    for (const detail::TileCell& cell : table->overflow) {
        add_cell(cell, to);
    }
}

void TileLedger::take_ended(record::Ring& ring) {
    add_table(ring, ended_);
    if (detail::TileTable* table = ring.tiles(); table != nullptr) {
        table->start_over();
    }
}

Status TileLedger::write(const std::vector<std::shared_ptr<record::Ring>>& rings, recording::Writer& writer) {
    recording::TileMap now = ended_;
    torn_.clear();
    for (const auto& ring : rings) {
        add_table(*ring, now);
    }
    std::vector<recording::TileTotals> grown;
    for (const recording::TileTotals& tile : now.sorted()) {
        const recording::TileTotals* known = written_.find(tile.key);
        const bool torn = std::find(torn_.begin(), torn_.end(), tile.key) != torn_.end();
        if (!torn && (known == nullptr || known->count != tile.count)) {
            grown.push_back(tile);
        }
    }
    if (grown.empty() && told_) {
        return {};
    }
    Status written = writer.add_tiles(generation_, grown.data(), grown.size());
    if (written.ok()) {
        told_ = true;
        for (const recording::TileTotals& tile : grown) {
            (void)written_.set(tile); // as many keys as `now` has, so there is room
        }
    }
    return written;
}

void TileLedger::start_over(std::uint32_t generation) {
    apart_.clear();
    ended_.clear();
    written_.clear();
    generation_ = generation;
    told_ = false;
}

} // namespace plumb::drain
