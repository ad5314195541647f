// SPDX-License-Identifier: Apache-2.0
// One thread's pen: writes records into that thread's ring. Owned by the library, one per (thread, profiler).
// Thread rule: every function is called by the owning thread only; the drain thread sees the ring through its header.
// No lock, allocation or formatting; the one system call is a CPU-time read after something longer than long_ticks.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/layout.hpp"
#include "plumb/work.hpp"

namespace plumb {

class QueueTimer; // backend.hpp

inline namespace v1 {

class Recorder;

inline constexpr unsigned max_depth = 64;
inline constexpr std::uint32_t max_layers = 65535;  // their indices count from 0
inline constexpr std::uint16_t no_name_id = 0xffff; // of no name

namespace detail {

struct TileTable; // tile.hpp

/// The machine's fastest monotonic counter; used only where the library found it sound (else mode_indirect is set).
PLUMB_ALWAYS_INLINE std::uint64_t read_ticks() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_ia32_rdtsc(); // __rdtsc() without the 36,000 lines of x86intrin.h
#elif defined(__aarch64__) && defined(__GNUC__)
    std::uint64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

inline constexpr std::size_t work_cache_size = 256;

struct OpenLap {
    std::uint64_t begin;
    std::uint64_t bits; // record bits without duration; 0: no lap is open at this depth
    std::uint32_t mode;
    std::uint32_t reserved;
    Work work;
};

/// The lap open on a device queue at one depth.
struct OpenDeviceLap {
    QueueTimer* timer; // null: none
    std::uint32_t track;
    std::uint32_t mode;
    std::uint64_t token;
    std::uint64_t begin; // host ticks at submission
    std::uint64_t bits;
    Work work;
};

/// A scope, layer or step begun by push_…(): the object itself.
struct PushedScope {
    enum class Kind : std::uint8_t { scope, layer, step, context }; // a context: plumb.h alone pushes one
    alignas(8) unsigned char object[120];
    std::uint32_t mode; // it was begun in
    Kind kind;
};

struct alignas(64) KnownWork { // one cache line: in a decode that streams weights every line touched was evicted
    std::uint16_t id;          // no_name_id: nothing known
    Work work;
};

struct alignas(64) ThreadRecorder {
    Record* records;
    RingHeader* ring;
    std::uint64_t mask;
    std::uint64_t limit;    // head value at which the tail must be read again
    std::uint64_t deadline; // a scope that begins later than this comes after a long gap
    Recorder* recorder;
    std::uint64_t open_laps; // bit d - 1: a lap of a thread or of a queue is open at depth d
    unsigned depth;          // open scopes, steps and layers
    std::uint32_t
        reserved; // slots kept back for the ends of open steps, layers and contexts; limit is lower by as many
    // Above: all that a scope without work needs of us, in one cache line.
    std::uint64_t sampled;       // when the CPU time was last sampled
    std::uint64_t step_plus_one; // current context; 0: none
    std::uint32_t layer_plus_one;
    std::uint32_t track;
    std::uint64_t generation;    // of the recorder: a new one may lie at the same address
    TileTable* tiles;            // null until the thread's first tile
    bool tiles_refused;          // there was no memory for them
    OpenLap laps[max_depth + 1]; // invariant: none is open at any d > depth
    OpenDeviceLap device_laps[max_depth + 1];
    KnownWork known_work[work_cache_size]; // last work written, by id modulo size
    unsigned pushed_count;
    unsigned pushed_beyond;        // pushed when there was no room left: their pops end nothing
    PushedScope pushed[max_depth]; // by push_scope(), innermost last

    /// Whether a lap is open at the innermost open scope; there is one.
    [[nodiscard]] bool lap_open() const noexcept { return (open_laps >> (depth - 1) & 1) != 0; }

    /// False when the ring is full: the record is dropped and counted.
    PLUMB_ALWAYS_INLINE bool push(std::uint64_t first, std::uint64_t second) noexcept {
        // Relaxed: only this thread stores head.
        const std::uint64_t head = ring->head.load(std::memory_order_relaxed);
        if (PLUMB_UNLIKELY(head == limit) && !refill(head)) {
            return false;
        }
        Record& record = records[head & mask];
        record.first = first;
        record.second = second;
        // Release: whoever reads head (the drain, or recovery after a kill) sees the record behind it.
        ring->head.store(head + 1, std::memory_order_release);
        return true;
    }

    /// Writes the quantities that differ from the last ones of this name. Returns `bits`, less flag_work on loss.
    PLUMB_ALWAYS_INLINE std::uint64_t push_work(std::uint64_t bits, const Work& work) noexcept {
        const auto id = static_cast<std::uint16_t>(bits >> id_shift);
        KnownWork& known = known_work[id % work_cache_size];
        if (PLUMB_LIKELY(known.id == id && same(known.work, work))) {
            return bits;
        }
        const Work copy = work; // so that the caller's stays in registers
        return push_changed_work(bits, known, copy);
    }

    PLUMB_API bool refill(std::uint64_t head) noexcept;
    /// True when `count` records fit now: those that mean something only together are written all or none.
    PLUMB_API bool has_room(std::uint64_t count) noexcept;
    /// Opens a step, layer or context of `count` records. On success the slots of its end are kept back, so that a full
    /// ring never leaves it open; on failure nothing may be written, and the loss is counted.
    PLUMB_API bool reserve_structure(std::uint64_t count) noexcept;
    /// Gives back the slots of its end, to be used at once.
    PLUMB_API void release_structure() noexcept;
    PLUMB_API std::uint64_t push_changed_work(std::uint64_t bits, KnownWork& known, const Work& work) noexcept;
    PLUMB_API void drop(Drop reason) noexcept;
    /// Says which collective the next scope of that name is.
    PLUMB_API void push_collective(Name name, const Collective& of) noexcept;
    /// A record with a duration of any length.
    PLUMB_API bool push_timed(std::uint64_t first, std::uint64_t bits, std::uint64_t duration) noexcept;
    PLUMB_API void sample_cpu_time() noexcept;
    /// The sample behind a scope or lap that took `duration` and ended at `now`, where one is due.
    void sample_after(std::uint64_t duration, std::uint64_t now) noexcept;
    /// Ends the laps open at `depth`, host and device, if any, at `now`.
    PLUMB_API void end_lap(std::uint64_t now, std::uint32_t mode) noexcept;
    void note_laps() noexcept; // after laps or device_laps changed at this depth
    void end_host_lap(std::uint64_t now, std::uint32_t mode) noexcept;
    void end_device_lap(std::uint64_t now, std::uint32_t mode) noexcept;
    /// A device scope: `token` is collected later. Given back to the timer when the ring is full. Nothing is written for
    /// one that is not timed, or noted in a capture.
    void push_device(const OpenDeviceLap& ended, std::uint64_t duration) noexcept;
};

/// Where a thread finds its recorder for a profiler: by slot, checked by generation. Zero-initialised, trivial.
struct ThreadSlot {
    std::uint64_t generation;
    ThreadRecorder* thread;
};
inline constexpr unsigned thread_slots = 16;

#if defined(__GNUC__)
// initial-exec: global-dynamic TLS costs 1.28x of a whole scope in a shared library.
extern PLUMB_API __thread ThreadSlot thread_slot_table[thread_slots] PLUMB_TLS_MODEL;
#else
extern thread_local ThreadSlot thread_slot_table[thread_slots];
#endif

} // namespace detail
} // namespace v1
} // namespace plumb
