// SPDX-License-Identifier: Apache-2.0
// What a scrape says, as plain data: copied by the drain thread, read by the one that answers. Everything in it is bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/bricks.hpp"

namespace plumb::metrics {

/// Phases as labels say them: those of Phase, and "unknown" where a scope's step was never seen.
inline constexpr std::size_t phases = 5;
inline constexpr std::uint8_t unknown_phase = 4;
[[nodiscard]] constexpr const char* phase_label(std::size_t phase) noexcept {
    return phase == unknown_phase ? "unknown" : phase_word(static_cast<Phase>(phase));
}

/// Upper bounds of the buckets of step times, in seconds; one more bucket has no bound.
inline constexpr std::array<double, 10> step_bounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5};

/// At most so many of each, so that a scrape has at most 200 series.
inline constexpr std::size_t most_bricks = 60; // series of each of the two that have a brick
inline constexpr std::size_t most_groups = 8;
inline constexpr std::size_t most_reasons = 8;

struct BrickFigures {
    std::string brick;
    std::string source;
    std::uint8_t phase = 0;
    double ns = 0;
    std::uint64_t calls = 0;
};

struct StepFigures {
    std::array<std::uint64_t, step_bounds.size() + 1> buckets{}; // each by itself, not summed up
    std::uint64_t steps = 0;
    double ns = 0;
};

/// Absent: not known, or nothing of it was recorded.
struct Figures {
    std::string model, tp_rank, pp_rank; // empty: not given
    std::vector<BrickFigures> bricks;
    std::array<StepFigures, phases> steps;
    std::vector<std::pair<std::string, double>> collective_ns; // by group; empty: the program did not say it
    std::optional<std::uint64_t> prefill_tokens, decode_tokens;
    std::optional<std::uint64_t> graph_replays;
    std::vector<std::pair<std::string, std::uint64_t>> eager_steps; // by reason
    std::optional<std::uint64_t> dropped_records;
    std::optional<double> own_cost;
    std::uint64_t bricks_in_other = 0; // names that have no series of their own
};

/// In the text format of Prometheus, version 0.0.4. Bytes that are no UTF-8 are replaced.
[[nodiscard]] std::string text_of(const Figures& figures);

} // namespace plumb::metrics
