// SPDX-License-Identifier: Apache-2.0
// What a command buffer's completion handler notes: when the device began and ended it. Handlers are added before the
// commit, run on a thread of Metal's at any later time, and may outlive whoever asked: a note lives until both its owners and
// the handler have gone, and the pool until its last note. Thread rule: any thread. Bounded: all memory is taken at
// creation.
//
// Invariants
//  1. `uses` counts the handler's block (by the block's own copy and dispose) and, as one, all owners.
//  2. The times are written once, by the handler, before `state` leaves pending (release); they are read after it (acquire).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "backends/metal/driver.hpp"
#include "backends/token_pool.hpp"

namespace plumb::backends::metal {

class Completions;

class Completion {
  public:
    /// Error pending until the command buffer has completed, failed where the device ended it with an error or nobody
    /// committed it, unsupported where the system gives no times (0), corrupt where they contradict each other.
    [[nodiscard]] Status look() const noexcept;
    /// No handler will run any more.
    [[nodiscard]] bool over() const noexcept { return state_.load(std::memory_order_acquire) != State::pending; }
    /// Nanoseconds of the system's uptime, once look() is successful.
    [[nodiscard]] std::uint64_t begin_ns() const noexcept { return begin_ns_; }
    [[nodiscard]] std::uint64_t end_ns() const noexcept { return end_ns_; }

    void own() noexcept { owners_.fetch_add(1, std::memory_order_relaxed); } // the caller is an owner already
    void disown() noexcept {
        disown([](const Completion&) {});
    }
    /// `last(note)` is called by the last owner, before the note goes.
    template <class Last>
    void disown(Last last) noexcept {
        if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
            last(std::as_const(*this));
            drop_use();
        }
    }

    /// Passes of this command buffer that are timed, and what those that were read sum to. Any owner.
    void expect_part() noexcept { expected_.fetch_add(1, std::memory_order_relaxed); }
    void add_part(std::uint64_t ticks) noexcept {
        part_ticks_.fetch_add(ticks, std::memory_order_relaxed); // disown() orders it before the last owner's reading
        read_.fetch_add(1, std::memory_order_relaxed);
    }
    [[nodiscard]] bool has_all_parts() const noexcept {
        const std::uint32_t expected = expected_.load(std::memory_order_relaxed);
        return expected > 0 && expected == read_.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint64_t part_ticks() const noexcept { return part_ticks_.load(std::memory_order_relaxed); }

  private:
    friend class Completions;
    enum class State : std::uint8_t { pending, timed, failed, abandoned };

    static void invoke(ObjcBlock* block, Id command_buffer);
    static void copy(ObjcBlock* to, const ObjcBlock* from);
    static void dispose(ObjcBlock* block);
    static const ObjcBlock::Layout layout;
    void drop_use() noexcept;

    Completions* pool_ = nullptr;
    DeviceToken place_;
    std::atomic<std::uint32_t> uses_{0};
    std::atomic<std::uint32_t> owners_{0};
    std::atomic<State> state_{State::pending};
    std::uint64_t begin_ns_ = 0;
    std::uint64_t end_ns_ = 0;
    std::uint64_t error_ = 0; // the status it ended with
    std::atomic<std::uint32_t> expected_{0};
    std::atomic<std::uint32_t> read_{0};
    std::atomic<std::uint64_t> part_ticks_{0};
};

class Completions {
  public:
    struct Close {
        void operator()(Completions* pool) const { pool->drop_use(); }
    };
    using Handle = std::unique_ptr<Completions, Close>;

    static Result<Handle> create(const MetalDriver& driver, std::uint32_t capacity);
    /// A note of a command buffer that is not committed yet; the caller is its owner.
    Result<Completion*> watch(Id command_buffer) noexcept;
    [[nodiscard]] std::size_t alive() const noexcept { return notes_.in_flight(); }
    [[nodiscard]] const MetalDriver& driver() const noexcept { return driver_; }

  private:
    friend class Completion;
    struct Free {
        void operator()(void* memory) const { ::operator delete(memory, std::align_val_t{64}); }
    };
    Completions(const MetalDriver& driver, void* memory, std::uint32_t capacity)
        : driver_(driver), memory_(memory), notes_(memory, capacity) {}
    void drop_use() noexcept;

    const MetalDriver& driver_;
    std::atomic<std::size_t> uses_{1}; // the timer and every note
    std::unique_ptr<void, Free> memory_;
    TokenPool<Completion> notes_;
};

} // namespace plumb::backends::metal
