// SPDX-License-Identifier: Apache-2.0
// PLUMB_TILE: the pieces that a kernel cuts its work into, as a map over row and column on three levels. Too many for a
// record each, so every thread adds them up in a table of its own, made and touched with its first tile; the drain copies it
// now and then. Off, a tile costs one relaxed load; on, two clock reads and a few additions. Nothing is locked, waited for
// or allocated after the first tile of a thread.
// Thread rule: as for every recording call, from any thread; a Tile belongs to the thread that made it. A table is written by
// its thread alone; whoever reads it meanwhile takes whole cells or none (TileCell::read).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plumb/record.hpp"

namespace plumb {

/// Where a tile's data lie. Values are part of the file format.
enum class TileLevel : std::uint8_t {
    macro = 1, // last-level cache or device memory
    midi = 2,  // L2 or shared memory
    micro = 3, // registers
};
inline constexpr std::size_t tile_levels = 3;

constexpr const char* tile_word(TileLevel level) noexcept {
    constexpr const char* words[] = {"none", "macro", "midi", "micro"};
    const auto index = static_cast<std::size_t>(level);
    return index <= tile_levels ? words[index] : words[0];
}

inline namespace v1 {
namespace detail {

/// Which tile: level (2 bits) | name (16) | row (23) | column (23), from the top; never 0.
using TileKey = std::uint64_t;
inline constexpr unsigned tile_place_bits = 23; // rows and columns lie below 2^23
inline constexpr std::uint64_t tile_place_mask = (std::uint64_t{1} << tile_place_bits) - 1;

/// Of the tiles of a level that are not kept apart: the table is full, or row or column cannot be written.
constexpr TileKey tile_overflow_key(TileLevel level) noexcept {
    return static_cast<std::uint64_t>(level) << 62 | std::uint64_t{no_name_id} << (2 * tile_place_bits);
}
constexpr TileKey tile_key(TileLevel level, std::uint16_t name, std::uint64_t row, std::uint64_t col) noexcept {
    return (row | col) <= tile_place_mask
               ? static_cast<std::uint64_t>(level) << 62 | std::uint64_t{name} << (2 * tile_place_bits) |
                     row << tile_place_bits | col
               : tile_overflow_key(level);
}
constexpr TileLevel tile_level_of(TileKey key) noexcept { return static_cast<TileLevel>(key >> 62); }
constexpr std::uint16_t tile_name_of(TileKey key) noexcept {
    return static_cast<std::uint16_t>(key >> (2 * tile_place_bits));
}
constexpr std::uint32_t tile_row_of(TileKey key) noexcept {
    return static_cast<std::uint32_t>(key >> tile_place_bits & tile_place_mask);
}
constexpr std::uint32_t tile_col_of(TileKey key) noexcept { return static_cast<std::uint32_t>(key & tile_place_mask); }

/// Ticks that TileCell::min holds at most; this much means: at least this much.
inline constexpr std::uint32_t tile_min_unknown = 0xffffffff;

/// All calls of one tile on one thread. Times in ticks. One cache line.
struct alignas(64) TileCell {
    std::atomic<TileKey> key;
    std::atomic<std::uint32_t> begun; // low half of `count` as it will be: differs from it while the cell is written
    std::atomic<std::uint32_t> min;
    std::atomic<std::uint64_t> count;
    std::atomic<std::uint64_t> total;
    /// As total, each call taken as at most four times the mean before it; the first as at most four times the second.
    std::atomic<std::uint64_t> calm;
    std::atomic<std::uint64_t> max;
    std::atomic<double> bytes, flops; // of all calls; NaN once a call did not say

    /// What it holds: whole, or false while its thread is adding to it.
    struct Copy {
        TileKey key;
        std::uint64_t count, total, calm, min, max;
        double bytes, flops;
    };

    PLUMB_ALWAYS_INLINE void add(std::uint64_t ticks, double call_bytes, double call_flops) noexcept {
        // Relaxed loads: only this thread stores. Release: whoever has read one of these stores sees `begun` before it.
        const std::uint64_t n = count.load(std::memory_order_relaxed);
        begun.store(static_cast<std::uint32_t>(n + 1), std::memory_order_relaxed);
        total.store(total.load(std::memory_order_relaxed) + ticks, std::memory_order_release);
        const std::uint64_t before = calm.load(std::memory_order_relaxed);
        // A call that the system put aside for a while says nothing of the tile: it must not make it look slow.
        const bool wild = n != 0 && (ticks >= tile_min_unknown || ticks * n > 4 * (before + n));
        calm.store(before + (PLUMB_UNLIKELY(wild) ? tamed(ticks, before / n) : ticks), std::memory_order_release);
        if (PLUMB_UNLIKELY(ticks < min.load(std::memory_order_relaxed))) {
            if (n == 1) { // the first may be the one that was put aside
                calm.store(tamed(before, ticks) + ticks, std::memory_order_release);
            }
            min.store(static_cast<std::uint32_t>(ticks), std::memory_order_release);
        }
        if (PLUMB_UNLIKELY(ticks > max.load(std::memory_order_relaxed))) {
            max.store(ticks, std::memory_order_release);
        }
        bytes.store(bytes.load(std::memory_order_relaxed) + call_bytes, std::memory_order_release);
        flops.store(flops.load(std::memory_order_relaxed) + call_flops, std::memory_order_release);
        count.store(n + 1, std::memory_order_release);
    }

    /// One tick more than the mean, so that calls of no time do not hold it at 0 for ever.
    static constexpr std::uint64_t tamed(std::uint64_t ticks, std::uint64_t mean) noexcept {
        return ticks < 4 * (mean + 1) ? ticks : 4 * (mean + 1);
    }
    PLUMB_API void begin(TileKey for_key) noexcept;
    [[nodiscard]] PLUMB_API bool read(Copy& to) const noexcept;
};
static_assert(sizeof(TileCell) == 64, "a cell is a cache line");
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<double>::is_always_lock_free,
              "nothing waits");

/// The tiles of one thread: an open hash over cells that were touched when it was made. Owned by the thread's ring.
struct alignas(64) TileTable {
    TileCell* cells;
    std::uint32_t* order; // indices of cells in use, in order of their first call
    std::uint64_t mask;
    std::uint32_t limit;                   // cells in use at most; fewer than there are, so that a search ends
    std::atomic<std::uint32_t> used;       // release: order and cell are written
    std::atomic<std::uint32_t> asked;      // generation wanted: reset() adds one
    std::atomic<std::uint32_t> generation; // generation of what is in it: its thread follows with its next tile
    TileCell overflow[tile_levels];

    PLUMB_ALWAYS_INLINE void add(TileKey key, std::uint64_t ticks, double bytes, double flops) noexcept {
        // Relaxed: a tile that misses a reset by a moment is as good as one ended a moment earlier.
        if (PLUMB_UNLIKELY(asked.load(std::memory_order_relaxed) != generation.load(std::memory_order_relaxed))) {
            start_over();
        }
        // The upper half of the product depends on every bit of the key.
        TileCell* cell = &cells[(key * 0x9e3779b97f4a7c15u) >> 32 & mask];
        if (PLUMB_UNLIKELY(cell->key.load(std::memory_order_relaxed) != key)) {
            cell = &find(key);
        }
        cell->add(ticks, bytes, flops);
    }

    /// The key's cell, begun where there is room; else that of what is not kept apart.
    PLUMB_API TileCell& find(TileKey key) noexcept;
    /// Empties it, as `asked`. By its thread, or while nobody writes it.
    PLUMB_API void start_over() noexcept;
};

/// Gives the calling thread its table. False: there is no memory for one, counted.
PLUMB_API PLUMB_NOINLINE bool attach_tiles(ThreadRecorder& thread) noexcept;

/// What tags say of a tile: its brick, and what it moves and computes; NaN where nobody said.
struct TileFacts {
    std::uint16_t name = 0;
    double bytes = PLUMB_NAN;
    double flops = PLUMB_NAN;
};
constexpr void apply_tile_tag(TileFacts& facts, WorkTag<WorkQuantity::bytes> tag) noexcept { facts.bytes = tag.value; }
constexpr void apply_tile_tag(TileFacts& facts, WorkTag<WorkQuantity::flops> tag) noexcept { facts.flops = tag.value; }
constexpr void apply_tile_tag(TileFacts& facts, Name name) noexcept { facts.name = name.id; }
constexpr void apply_tile_tag(TileFacts& facts, Brick brick) noexcept {
    facts.name = static_cast<std::uint16_t>(brick);
}

} // namespace detail

/// One tile, from here to the end of the block. May not change threads.
class Tile {
  public:
    /// Off: does nothing.
    Tile() noexcept : thread_(nullptr) {}

    template <class Row, class Col, class... Tags>
    PLUMB_ALWAYS_INLINE Tile(Recorder& recorder, std::uint32_t mode, TileLevel level, Row row, Col col,
                             Tags... tags) noexcept
        : thread_(recorder.thread()), mode_(mode) {
        static_assert(std::is_integral_v<Row> && std::is_integral_v<Col>, "row and column are whole numbers");
        detail::ThreadRecorder* thread = thread_;
        if (PLUMB_UNLIKELY(thread == nullptr)) {
            return;
        }
        if (PLUMB_UNLIKELY(thread->tiles == nullptr) && !detail::attach_tiles(*thread)) {
            thread_ = nullptr;
            return;
        }
        detail::TileFacts facts;
        (detail::apply_tile_tag(facts, tags), ...);
        bytes_ = facts.bytes;
        flops_ = facts.flops;
        key_ = detail::tile_key(level, facts.name, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(col));
        begin_ = PLUMB_LIKELY((mode & detail::mode_indirect) == 0) ? detail::read_ticks() : recorder.stamp();
        std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps the body behind the stamp
    }

    Tile(const Tile&) = delete;
    Tile& operator=(const Tile&) = delete;
    PLUMB_ALWAYS_INLINE ~Tile() { end(); }

    PLUMB_ALWAYS_INLINE void end() noexcept {
        detail::ThreadRecorder* thread = thread_;
        if (thread == nullptr) {
            return;
        }
        thread_ = nullptr;
        std::atomic_signal_fence(std::memory_order_seq_cst); // the compiler keeps the body before the stamp
        const Recorder& recorder = *thread->recorder;
        const std::uint64_t now =
            PLUMB_LIKELY((mode_ & detail::mode_indirect) == 0) ? detail::read_ticks() : recorder.stamp();
        if (PLUMB_UNLIKELY(recorder.mode() != mode_ || now < begin_)) {
            thread->drop(recorder.mode() != mode_ ? detail::Drop::across_toggle : detail::Drop::negative_span);
            return;
        }
        thread->tiles->add(key_, now - begin_, bytes_, flops_);
    }

  private:
    // No function takes a pointer to a Tile: it lives in registers, and an off tile leaves nothing behind.
    detail::ThreadRecorder* thread_; // null: off or ended
    std::uint64_t begin_ = 0;
    detail::TileKey key_ = 0;
    double bytes_ = 0, flops_ = 0;
    std::uint32_t mode_ = 0;
};

namespace detail {

/// A tag as Tile takes it: text becomes a name.
template <class Site, class Tag>
PLUMB_ALWAYS_INLINE auto tile_tag_at(Tag&& tag) noexcept {
    if constexpr (is_literal<Tag> || std::is_convertible_v<Tag, const char*>) {
        return name_at<Site, Tag>(static_cast<Tag&&>(tag));
    } else {
        return tag;
    }
}

template <class Site, class Row, class Col, class... Tags>
PLUMB_ALWAYS_INLINE Tile open_tile(Recorder& recorder, std::uint32_t mode, Site, TileLevel level, Row row, Col col,
                                   Tags&&... tags) noexcept {
    return Tile(recorder, mode, level, row, col, tile_tag_at<Site, Tags>(static_cast<Tags&&>(tags))...);
}

} // namespace detail
} // namespace v1
} // namespace plumb

#if defined(PLUMB_DISABLE)

#define PLUMB_TILE(prof, ...) ((void)sizeof(::plumb::detail::open_tile((prof), 0u, 0, __VA_ARGS__)))

#else

/// PLUMB_TILE(prof, level, row, col, tags…): one tile, to the end of the block. Tags in any order: the brick that it is a
/// part of (as in PLUMB_BRICK), bytes(n), flops(n). Tiles may nest; an outer one holds what recording the inner ones costs.
#define PLUMB_TILE(prof, ...) PLUMB_OPEN(Tile, mode_tiles, ::plumb::detail::open_tile, prof, PLUMB_SITE, __VA_ARGS__)

#endif
