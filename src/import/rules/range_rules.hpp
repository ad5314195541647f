// SPDX-License-Identifier: Apache-2.0
// What a range is that a program named itself (NVTX): a step, a layer, a brick, or nothing to be recorded; by rules that are data
// (share/plumb/nvtx.rules). Labels own their texts. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/rules/rules_text.hpp"
#include "plumb/bricks.hpp"
#include "plumb/work.hpp"

namespace plumb::imported {

enum class RangeKind : std::uint8_t { brick, step, layer, hidden };

/// What the number is that a range carries beside its name.
enum class RangePayload : std::uint8_t { none, bytes, flops, elements, layer, prefill, decode, sequences, kv_length };

struct RangeLabel {
    RangeKind kind = RangeKind::brick;
    bool by_rule = false; // false: no rule knows it, and its brick is called as it is
    RangePayload payload = RangePayload::none;
    std::string name; // of the brick; of a step or layer what it is called where it can only be a brick
    std::optional<std::uint32_t> layer; // of a brick: in which it is
    Phase phase = Phase::none;          // of a step, with its values
    detail::StepValues step;
    double flops = std::numeric_limits<double>::quiet_NaN(); // known from the shapes in its name
};

class RangeRules {
  public:
    /// The files, first to last, then the rules of plumb itself: those of `installed`, or those built in where that is empty.
    [[nodiscard]] static Result<RangeRules> load(const std::vector<std::string>& files, const std::string& installed);
    /// These alone.
    [[nodiscard]] static Result<RangeRules> compile(const std::vector<RulesText>& sources);

    RangeRules(RangeRules&&) noexcept;
    RangeRules& operator=(RangeRules&&) noexcept;
    ~RangeRules();

    /// The name without what counts up in it, by which it may be known again: a part of the text, or `place`, which is overwritten.
    /// Safe from any thread.
    [[nodiscard]] std::string_view key(std::string_view text, std::string& place) const;
    /// Some microseconds. `domain` is empty for the default one; `key` is what key() gave.
    [[nodiscard]] RangeLabel label(std::string_view domain, std::string_view key);

    /// How often a rule was given up on a name, because matching took too many steps: then it counts as one that did not match.
    [[nodiscard]] std::size_t given_up() const noexcept;

  private:
    struct State;
    explicit RangeRules(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

/// share/plumb/nvtx.rules of the source tree.
[[nodiscard]] std::string_view built_in_range_rules() noexcept;

} // namespace plumb::imported
