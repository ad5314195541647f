// SPDX-License-Identifier: Apache-2.0
// Slots for the scopes in flight of one queue timer, named by tokens that are never valid twice. Owned by that timer.
// Thread rule: any thread, lock-free. Bounded: all memory is taken at creation.
//
// Invariants
//  1. A slot's state is (generation, phase). A token names a slot and the generation it was given in; it is valid while
//     the generations agree. Generations only grow, by one each time a slot is freed.
//  2. free -> open -> ended -> free, each through `busy`: whoever moved a slot into busy owns its payload until it moves
//     on, so two threads that end or collect one token cannot both succeed.
//  3. A slot is on the free list exactly when its phase is free.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "plumb/backend.hpp"

namespace plumb::backends {

enum class TokenState : std::uint8_t { free = 0, open = 1, ended = 2, busy = 3, unknown = 4 };

template <class Payload>
class TokenPool {
  public:
    struct alignas(64) Slot {
        std::atomic<std::uint64_t> state{std::uint64_t{1} << phase_bits}; // generation 1, free
        std::atomic<std::uint32_t> next_plus_one{0};
        Payload payload{};
    };
    static constexpr std::uint32_t max_capacity = (1u << 24) - 1;
    static constexpr std::size_t bytes(std::uint32_t capacity) { return capacity * sizeof(Slot); }

    /// `memory` holds bytes(capacity), aligned to 64, and outlives the pool.
    TokenPool(void* memory, std::uint32_t capacity) : slots_(static_cast<Slot*>(memory)), capacity_(capacity) {
        for (std::uint32_t i = capacity; i-- > 0;) {
            ::new (static_cast<void*>(slots_ + i)) Slot;
            push_free(i);
        }
    }
    TokenPool(const TokenPool&) = delete;
    TokenPool& operator=(const TokenPool&) = delete;

    /// A free slot, now busy; null when all are in flight. Put it back as open.
    Payload* acquire(DeviceToken& token) noexcept {
        std::uint32_t index = 0;
        if (!pop_free(index)) {
            return nullptr;
        }
        in_flight_.fetch_add(1, std::memory_order_relaxed); // a number for readers, orders nothing
        Slot& slot = slots_[index];
        // Relaxed: the slot came from the free list, whose acquire pop made its last owner's writes visible.
        const std::uint64_t generation = slot.state.load(std::memory_order_relaxed) >> phase_bits;
        slot.state.store(generation << phase_bits | bits(TokenState::busy), std::memory_order_relaxed);
        token.value = (generation & generation_mask) << index_bits | index;
        return &slot.payload;
    }

    /// Moves a valid token from `from` to busy. Null, with what it is instead in `found`, when it is not `from`.
    Payload* take(DeviceToken token, TokenState from, TokenState& found) noexcept {
        Slot* slot = slot_of(token);
        found = TokenState::unknown;
        if (slot == nullptr) {
            return nullptr;
        }
        // Acquire: what the thread that put it back wrote into the payload is seen here.
        std::uint64_t state = slot->state.load(std::memory_order_acquire);
        if (!names(token, state)) {
            return nullptr;
        }
        found = static_cast<TokenState>(state & phase_mask);
        const std::uint64_t busy = (state & ~phase_mask) | bits(TokenState::busy);
        if (found != from || !slot->state.compare_exchange_strong(state, busy, std::memory_order_acquire)) {
            return nullptr;
        }
        return &slot->payload;
    }

    /// Puts a busy slot back as `phase` (open or ended).
    void put(DeviceToken token, TokenState phase) noexcept {
        Slot& slot = slots_[token.value & index_mask];
        const std::uint64_t generation = slot.state.load(std::memory_order_relaxed) >> phase_bits;
        // Release: pairs with take().
        slot.state.store(generation << phase_bits | bits(phase), std::memory_order_release);
    }

    /// Frees a busy slot: its token is spent.
    void release(DeviceToken token) noexcept {
        const auto index = static_cast<std::uint32_t>(token.value & index_mask);
        Slot& slot = slots_[index];
        const std::uint64_t generation = slot.state.load(std::memory_order_relaxed) >> phase_bits;
        slot.state.store((generation + 1) << phase_bits | bits(TokenState::free), std::memory_order_release);
        in_flight_.fetch_sub(1, std::memory_order_relaxed);
        push_free(index);
    }

    std::size_t in_flight() const noexcept { return in_flight_.load(std::memory_order_relaxed); }

    /// f(payload) of every slot that is not free; no other call may run meanwhile.
    template <class F>
    void for_each_in_flight(F f) noexcept {
        for (std::uint32_t i = 0; i < capacity_; ++i) {
            if ((slots_[i].state.load(std::memory_order_acquire) & phase_mask) != bits(TokenState::free)) {
                f(slots_[i].payload);
            }
        }
    }

  private:
    static constexpr unsigned index_bits = 24;
    static constexpr unsigned phase_bits = 2;
    static constexpr std::uint64_t index_mask = (std::uint64_t{1} << index_bits) - 1;
    static constexpr std::uint64_t phase_mask = (std::uint64_t{1} << phase_bits) - 1;
    static constexpr std::uint64_t generation_mask = (std::uint64_t{1} << 40) - 1;

    static constexpr std::uint64_t bits(TokenState phase) { return static_cast<std::uint64_t>(phase); }
    static bool names(DeviceToken token, std::uint64_t state) {
        return token.value >> index_bits == ((state >> phase_bits) & generation_mask) &&
               (state & phase_mask) != bits(TokenState::free);
    }
    Slot* slot_of(DeviceToken token) noexcept {
        const std::uint64_t index = token.value & index_mask;
        return index < capacity_ ? &slots_[index] : nullptr;
    }

    // The head carries a tag that grows with every change: a slot that left and came back in between is noticed.
    void push_free(std::uint32_t index) noexcept {
        std::uint64_t head = free_.load(std::memory_order_relaxed);
        std::uint64_t changed = 0;
        do {
            slots_[index].next_plus_one.store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
            changed = ((head >> 32) + 1) << 32 | (index + 1);
            // Release: whoever pops the slot sees its next and its state.
        } while (!free_.compare_exchange_weak(head, changed, std::memory_order_release, std::memory_order_relaxed));
    }
    bool pop_free(std::uint32_t& index) noexcept {
        std::uint64_t head = free_.load(std::memory_order_acquire);
        std::uint64_t changed = 0;
        do {
            if (static_cast<std::uint32_t>(head) == 0) {
                return false;
            }
            index = static_cast<std::uint32_t>(head) - 1;
            changed = ((head >> 32) + 1) << 32 | slots_[index].next_plus_one.load(std::memory_order_relaxed);
            // Acquire: pairs with push_free(). The release half hands on what earlier pushes published.
        } while (!free_.compare_exchange_weak(head, changed, std::memory_order_acq_rel, std::memory_order_acquire));
        return true;
    }

    Slot* slots_;
    std::uint32_t capacity_;
    alignas(64) std::atomic<std::uint64_t> free_{0};
    alignas(64) std::atomic<std::size_t> in_flight_{0};
};

} // namespace plumb::backends
