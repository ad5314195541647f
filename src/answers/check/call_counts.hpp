// SPDX-License-Identifier: Apache-2.0
// How often each complete step called a brick, step by step: a mean over steps would hide two calls here and none there.
// Calls inside captured graphs are replays times the sites of the graph. Pure; any thread, one at a time per source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/result.hpp"
#include "resolve/record_source.hpp"

namespace plumb {

/// Every complete step of the phase calls the brick exactly so often; with per_token, so often for each of its tokens.
struct ExpectedCalls {
    std::string brick;
    std::uint64_t count = 0;
    bool per_token = false;
};

inline constexpr std::size_t max_expected_calls = 64;

struct CallCount {
    std::uint64_t steps = 0;     // complete steps of the phase, warm-up included: a count needs no warm clock
    std::uint64_t judged = 0;    // of those, steps all of whose calls of this brick are in the recording
    std::uint64_t differing = 0; // of those
    bool too_many = false;       // some step has more calls than expected: no loss explains that
    std::uint64_t least = 0, most = 0, total = 0;
    std::uint64_t first_step = 0, first_found = 0, first_expected = 0; // the first that differs
    std::string unknown;                                               // why nothing could be judged; else empty
};

/// One for each of `expected`, at most max_expected_calls.
[[nodiscard]] Result<std::vector<CallCount>> count_calls(resolve::RecordSource& source, Phase phase,
                                                         const std::vector<ExpectedCalls>& expected);

} // namespace plumb
