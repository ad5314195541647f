// SPDX-License-Identifier: Apache-2.0
// The rare paths of tiles: a cell's first call, a full table, a reset, a thread's first tile.
#include "plumb/tile.hpp"

#include "record/recorder_access.hpp"
#include "record/ring_set.hpp"
#include "record/thread_registry.hpp"

namespace plumb {
inline namespace v1 {

void detail::TileCell::begin(TileKey for_key) noexcept {
    begun.store(0, std::memory_order_relaxed);
    count.store(0, std::memory_order_relaxed);
    total.store(0, std::memory_order_relaxed);
    calm.store(0, std::memory_order_relaxed);
    min.store(tile_min_unknown, std::memory_order_relaxed);
    max.store(0, std::memory_order_relaxed);
    bytes.store(0, std::memory_order_relaxed);
    flops.store(0, std::memory_order_relaxed);
    key.store(for_key, std::memory_order_relaxed);
}

bool detail::TileCell::read(Copy& to) const noexcept {
    // Acquire: with each value, the store of `begun` that came before it is seen; so where the two counts agree, nothing was
    // written between them.
    to.count = count.load(std::memory_order_acquire);
    to.key = key.load(std::memory_order_acquire);
    to.total = total.load(std::memory_order_acquire);
    to.calm = calm.load(std::memory_order_acquire);
    to.min = min.load(std::memory_order_acquire);
    to.max = max.load(std::memory_order_acquire);
    to.bytes = bytes.load(std::memory_order_acquire);
    to.flops = flops.load(std::memory_order_acquire);
    return begun.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(to.count);
}

detail::TileCell& detail::TileTable::find(TileKey key) noexcept {
    const TileLevel level = tile_level_of(key);
    if (key == tile_overflow_key(level)) {
        return overflow[static_cast<std::size_t>(level) - 1];
    }
    std::uint64_t index = (key * 0x9e3779b97f4a7c15u) >> 32 & mask;
    for (;; index = (index + 1) & mask) {
        const TileKey there = cells[index].key.load(std::memory_order_relaxed);
        if (there == key) {
            return cells[index];
        }
        if (there == 0) {
            break;
        }
    }
    const std::uint32_t n = used.load(std::memory_order_relaxed);
    if (n == limit) {
        return overflow[static_cast<std::size_t>(level) - 1];
    }
    cells[index].begin(key);
    order[n] = static_cast<std::uint32_t>(index);
    used.store(n + 1, std::memory_order_release); // whoever sees it sees the cell, begun
    return cells[index];
}

void detail::TileTable::start_over() noexcept {
    const std::uint32_t wanted = asked.load(std::memory_order_relaxed);
    const std::uint32_t n = used.load(std::memory_order_relaxed);
    for (std::uint32_t i = 0; i < n; ++i) {
        cells[order[i]].key.store(0, std::memory_order_relaxed);
    }
    for (std::size_t i = 0; i < tile_levels; ++i) {
        overflow[i].begin(tile_overflow_key(static_cast<TileLevel>(i + 1)));
    }
    used.store(0, std::memory_order_relaxed);
    // Release: who finds the generation it asked for finds the table empty. Nobody reads one that lags behind.
    generation.store(wanted, std::memory_order_release);
}

bool detail::attach_tiles(detail::ThreadRecorder& thread) noexcept {
    record::RingSet* rings = RecorderAccess::rings(*thread.recorder);
    if (rings == nullptr) {
        return false;
    }
    record::Ring* ring = thread.tiles_refused ? nullptr : record::find_ring(thread.generation);
    if (ring != nullptr && rings->give_tiles(*ring)) {
        return true;
    }
    thread.tiles_refused = true; // or every tile would ask the system anew
    rings->drops_without_ring.fetch_add(1, std::memory_order_relaxed);
    return false;
}

} // namespace v1
} // namespace plumb
