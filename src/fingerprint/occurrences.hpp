// SPDX-License-Identifier: Apache-2.0
// Counts how often each place of a step was seen: a flat table without allocation on most calls, since check=nonfinite asks
// for every tensor. Owned by Checks; REQUIRES its lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fingerprint/definition.hpp"

namespace plumb::fingerprint {

/// What tells one tensor of a step from another, but for its occurrence.
struct CheckKey {
    std::uint64_t step_plus_one = 0; // 0: outside any step
    std::uint32_t sequence = 0;
    std::uint32_t layer_plus_one = 0;
    std::uint32_t name_and_role = 0;

    friend bool operator==(const CheckKey&, const CheckKey&) = default;
};

class Occurrences {
  public:
    /// Steps that may run at once: the places of older ones are forgotten, in the end.
    static constexpr std::uint64_t steps_at_once = 16;

    /// How often the place was seen before.
    std::uint32_t next(const CheckKey& key) {
        newest_ = key.step_plus_one > newest_ ? key.step_plus_one : newest_;
        Slot* slot = find(key);
        if (slot->seen == 0 && ++used_ * 2 > slots_.size()) {
            grow();
            slot = find(key);
            ++used_;
        }
        slot->key = key;
        return slot->seen++;
    }

  private:
    struct Slot {
        CheckKey key;
        std::uint32_t seen = 0; // 0: free
    };

    [[nodiscard]] Slot* find(const CheckKey& key) noexcept {
        const std::uint64_t hash = mix64(key.step_plus_one ^ std::uint64_t{key.layer_plus_one} << 40 ^
                                         mix64(std::uint64_t{key.sequence} << 32 | key.name_and_role));
        std::size_t at = hash & (slots_.size() - 1);
        while (slots_[at].seen != 0 && !(slots_[at].key == key)) {
            at = (at + 1) & (slots_.size() - 1);
        }
        return &slots_[at];
    }

    /// Leaves out steps that have ended; twice the room where few have.
    void grow() {
        std::vector<Slot> kept;
        for (const Slot& slot : slots_) {
            const bool ended = slot.key.step_plus_one != 0 && slot.key.step_plus_one + steps_at_once < newest_;
            if (slot.seen != 0 && !ended) {
                kept.push_back(slot);
            }
        }
        used_ = kept.size();
        slots_.assign(used_ * 4 > slots_.size() ? slots_.size() * 2 : slots_.size(), Slot{});
        for (const Slot& slot : kept) {
            *find(slot.key) = slot;
        }
    }

    std::vector<Slot> slots_ = std::vector<Slot>(1024); // a power of two
    std::size_t used_ = 0;
    std::uint64_t newest_ = 0;
};

} // namespace plumb::fingerprint
