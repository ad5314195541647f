// SPDX-License-Identifier: Apache-2.0
// Counts how often each place of a step was seen: a flat table without allocation on most calls, since tensors=nonfinite asks
// for every tensor. Owned by TensorWatch; REQUIRES its lock.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
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
    Occurrences() = default;
    Occurrences(const Occurrences&) = delete;
    Occurrences& operator=(const Occurrences&) = delete;

    /// Steps that may run at once: the places of the one not seen for longest are forgotten when another begins.
    static constexpr std::size_t steps_at_once = 16;

    /// Places outside any step that are known at least: one that so many others came after may begin at 0 again.
    static constexpr std::size_t most_outside = 32768;

    /// How often the place was seen before.
    std::uint32_t next(const CheckKey& key) {
        const bool outside = key.step_plus_one == 0;
        if (outside && outside_.used == most_outside) {
            std::swap(outside_, outside_before_);
            empty(outside_);
        }
        Step& step = outside ? outside_ : step_of(key.step_plus_one);
        Slot* slot = find(step, key);
        if (slot->seen == 0) {
            if (++step.used * 2 > step.slots.size()) {
                grow(step);
                slot = find(step, key);
            }
            slot->key = key;
            slot->seen = outside ? find(outside_before_, key)->seen : 0;
        }
        return slot->seen++;
    }

  private:
    struct Slot {
        CheckKey key;
        std::uint32_t seen = 0; // 0: free
    };
    /// A table for each step stays small, and is emptied without a look at what it held.
    struct Step {
        std::uint64_t step_plus_one = 0; // 0: outside any step, or unused
        std::uint64_t last_asked = 0;
        std::size_t used = 0;
        std::vector<Slot> slots; // a power of two
    };
    static constexpr std::size_t fewest_slots = 256;

    Step& step_of(std::uint64_t step_plus_one) {
        ++asked_;
        if (last_->step_plus_one != step_plus_one) {
            last_ = &steps_[0];
            for (Step& step : steps_) {
                if (step.step_plus_one == step_plus_one) {
                    last_ = &step;
                    break;
                }
                if (step.last_asked < last_->last_asked) {
                    last_ = &step;
                }
            }
            if (last_->step_plus_one != step_plus_one) {
                empty(*last_);
                last_->step_plus_one = step_plus_one;
            }
        }
        last_->last_asked = asked_;
        return *last_;
    }

    static void empty(Step& step) {
        step.slots.assign(std::max(step.slots.size(), fewest_slots), Slot{});
        step.used = 0;
    }

    [[nodiscard]] static Slot* find(Step& step, const CheckKey& key) noexcept {
        const std::uint64_t hash = mix64(std::uint64_t{key.layer_plus_one} << 32 ^
                                         mix64(std::uint64_t{key.sequence} << 32 | key.name_and_role));
        std::size_t at = hash & (step.slots.size() - 1);
        while (step.slots[at].seen != 0 && !(step.slots[at].key == key)) {
            at = (at + 1) & (step.slots.size() - 1);
        }
        return &step.slots[at];
    }

    static void grow(Step& step) {
        std::vector<Slot> before(step.slots.size() * 2);
        before.swap(step.slots);
        for (const Slot& slot : before) {
            if (slot.seen != 0) {
                *find(step, slot.key) = slot;
            }
        }
    }

    Step outside_{0, 0, 0, std::vector<Slot>(fewest_slots)};
    Step outside_before_{0, 0, 0, std::vector<Slot>(fewest_slots)};
    std::array<Step, steps_at_once> steps_;
    Step* last_ = &steps_[0];
    std::uint64_t asked_ = 0;
};

} // namespace plumb::fingerprint
