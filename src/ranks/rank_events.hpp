// SPDX-License-Identifier: Apache-2.0
// What one recording of a rank says of its part in the work of all: its collectives and transfers, how busy its devices were, which
// tokens its experts had. Read once, streaming; what stays in memory is 48 bytes for each collective, and the intervals of other
// work while the recording is read. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/figure.hpp"
#include "plumb/result.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/tick_conversion.hpp"

namespace plumb::ranks {

inline constexpr std::uint64_t not_said = ~std::uint64_t{0};

/// One rank's part in a collective, a send, a receive or a transfer, in nanoseconds of its own common clock.
struct RankEvent {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint64_t sequence = not_said; // as the recording says it
    std::uint64_t step = not_said;
    std::uint32_t error = 0;          // of both moments, nanoseconds
    std::uint16_t name = 0;           // index into RankEvents::names
    std::uint16_t layer_plus_one = 0; // 0: in none
    std::uint8_t group = 0;           // index into RankEvents::groups
    Phase phase = Phase::none;
};

/// Tokens that the experts of a rank had in a layer, where moe_experts scopes said their elements.
struct ExpertLoad {
    double elements = 0;
    std::uint64_t calls = 0;
};

struct RankEvents {
    std::vector<RankEvent> events; // by begin
    std::vector<std::string> names;
    std::vector<std::string> groups = {""};      // as said; the first one: not said
    std::uint64_t left_out = 0;                  // events beyond most_events
    std::map<std::uint32_t, ExpertLoad> experts; // by layer
    std::uint64_t steps = 0;
    std::uint64_t prefill_steps = 0;
    std::int64_t first_ns = 0, last_ns = 0; // of all that was timed
    std::uint64_t samples = 0;
    bool queues_sampled = false; // timed in some steps only: the figures below are of the periods of those steps
    Figure busy_share;           // of that time, where there are device queues: something ran on one
    Figure hidden_ns;            // of the collectives' time: other work ran beside it
    std::int64_t collective_ns = 0;
    /// The host's clock, as a line from its ticks; nothing where it has none.
    std::optional<resolve::TickConversion> line;
};

inline constexpr std::size_t most_events = std::size_t{1} << 20;

/// Whether a brick is a part of the work of several ranks.
[[nodiscard]] bool crosses_ranks(const std::string& brick, Category category);

/// Errors: those of the run's stream.
[[nodiscard]] Result<RankEvents> read_events(const recording::RecordedRun& run);

} // namespace plumb::ranks
