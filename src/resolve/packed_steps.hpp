// SPDX-License-Identifier: Apache-2.0
// The facts of millions of steps, for readers that want samples only: 4 bytes a step where ids are consecutive, 20 where no two
// are. Steps come in any order, each id once. Owned by one pass over a recording; one thread while it is filled, constant afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "resolve/step_facts.hpp"

namespace plumb::resolve {

class PackedSteps final : public StepFactsSource {
  public:
    /// Steps that came too late for the order of ids and wait to be put into it.
    static constexpr std::size_t most_late = std::size_t{1} << 16;

    void add(std::uint64_t id, const StepFacts& facts);
    /// After the last step: counts ids that were used before, of which the first step stays.
    [[nodiscard]] std::uint64_t finish();
    void set_warmup(std::uint64_t id);
    void set_left_out(std::uint64_t id);
    /// A phase of which all steps were disturbed leaves none of them out, as StepTable has it.
    void keep_phases_that_have_no_other_steps();
    /// Whether there was such a phase.
    [[nodiscard]] bool some_phase_has_no_other_steps() const noexcept { return no_other_steps_; }

    [[nodiscard]] std::size_t size() const noexcept { return words_.size() + late_.size(); }
    /// REQUIRES: finished.
    [[nodiscard]] bool facts_of(std::uint64_t id, StepFacts& facts) const noexcept override;

  private:
    struct Run { // of consecutive ids
        std::uint64_t first_id;
        std::uint64_t first_index;
    };
    using Words = std::deque<std::uint32_t>; // grows without a moment that holds them twice

    [[nodiscard]] std::uint32_t word_of(std::uint64_t id, const StepFacts& facts);
    void append(std::uint64_t id, std::uint32_t word);
    void put_in_order();
    [[nodiscard]] std::size_t index_of(std::uint64_t id) const noexcept;
    [[nodiscard]] std::uint64_t id_after_last() const noexcept;

    std::vector<Run> runs_;
    Words words_;                                               // by index
    std::vector<std::pair<std::uint64_t, std::uint32_t>> late_; // id, word
    std::map<std::uint64_t, std::uint64_t> long_kv_;            // by id: lengths that a word has no room for
    std::uint64_t reused_ = 0;
    bool no_other_steps_ = false;
};

} // namespace plumb::resolve
