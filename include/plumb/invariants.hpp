// SPDX-License-Identifier: Apache-2.0
// Invariants of a healthy profile, checked on one or several recordings: calls per step, coverage, losses, node counts,
// variation over runs. What cannot be judged is `unknown` with its reason and never passes. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/outcome.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"

namespace plumb {

/// Every complete step of the phase calls the brick exactly so often; with per_token, so often for each of its tokens.
struct ExpectedCalls {
    std::string brick;
    std::uint64_t count = 0;
    bool per_token = false;
};

/// "lm_head=1/step", "sampling=1/token".
PLUMB_API Result<ExpectedCalls> parse_expected_calls(std::string_view words);

/// What to check; nothing is checked that is not asked for.
struct Invariants {
    Phase phase = Phase::decode;          // for calls, coverage and variation
    std::vector<ExpectedCalls> calls;     // at most 64
    std::optional<double> coverage;       // at least, 0..1
    std::optional<std::uint64_t> drops;   // records lost for any reason, at most
    std::optional<std::uint64_t> pending; // scopes that were recorded and have no time, at most
    bool node_check = false;              // no captured graph changed its kernels, or has a value baked in
    std::optional<double> variation;      // standard deviation / mean of the runs' mean periods, at most
};

struct CheckRow {
    std::string check;     // "lm_head=1/step"
    std::string recording; // its path; empty: of all of them
    Outcome verdict = Outcome::unknown;
    Figure found;        // calls per step, coverage, count, or variation
    std::string finding; // one sentence
};

struct CheckReport {
    std::vector<CheckRow> rows;
    Outcome verdict = Outcome::unknown; // of all
};

/// Error invalid_argument where nothing is asked for.
PLUMB_API Result<CheckReport> check_recordings(const std::vector<std::string>& paths, const Invariants& invariants);
/// A line per check, and JSON (schema plumb.check/1, docs/report_schema.md).
PLUMB_API std::string render_text(const CheckReport& report, const TextOptions& options = {});
PLUMB_API std::string render_json(const CheckReport& report);

} // namespace plumb
