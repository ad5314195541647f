// SPDX-License-Identifier: Apache-2.0
// Budgets: a target per token, scaled by the tokens of the steps, against what a run took, brick by brick.
// Pure functions of a Report, which the caller owns; any thread. Times are nanoseconds.
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

/// What one brick may take: for each token of a step, or for each step however many tokens it has.
struct BrickLimit {
    std::string brick;
    double ns = 0;
    bool per_step = false;
};

/// "lm_head=400us", "lm_head=0.4ms/token", "sampling=1ms/step"; units ns, us, ms, s.
PLUMB_API Result<BrickLimit> parse_brick_limit(std::string_view words);

struct BudgetOptions {
    Phase phase = Phase::decode;
    double ns_per_token = 0; // 1e9 / tokens per second
    std::vector<BrickLimit> bricks;
};

/// One brick, or one part of the period that is no brick: overlap, unattributed, idle. All per step, means.
struct BudgetRow {
    std::string name;
    bool account = false; // a part of the period, not a brick
    bool parent = false;  // holds other bricks, which have rows of their own
    bool lap = false;
    Figure step_ns;       // children included
    Figure self_ns;       // without them
    Figure token_ns;      // step_ns / tokens per step
    Figure percent;       // step_ns / budget of a step
    bool limited = false; // a limit was asked for
    Figure allowed_ns;    // that limit; else step_ns * budget / period: its part when all shrink or grow alike
    Figure room_ns;       // allowed - step; negative: overrun
    Outcome verdict = Outcome::unknown; // only where `limited`
};

struct BudgetReport {
    Phase phase = Phase::decode;
    std::uint64_t steps = 0;
    double ns_per_token = 0;
    Figure tokens_per_step;
    Figure budget_ns; // of a step: ns_per_token * tokens per step
    Figure period_ns; // of a step, mean
    Figure room_ns;   // budget - period; negative: overrun
    Figure tokens_per_second;
    Outcome period_verdict = Outcome::unknown;
    std::vector<BudgetRow> rows;
    Outcome verdict = Outcome::unknown; // of the period and of all limits
    std::vector<std::string> notes;
};

PLUMB_API BudgetReport budget_of(const Report& report, const BudgetOptions& options);
PLUMB_API Result<BudgetReport> budget_recording(const std::string& path, const BudgetOptions& options);
/// As a table, and as JSON (schema plumb.budget/1, docs/report_schema.md).
PLUMB_API std::string render_text(const BudgetReport& report, const TextOptions& options = {});
PLUMB_API std::string render_json(const BudgetReport& report);

} // namespace plumb
