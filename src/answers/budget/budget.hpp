// SPDX-License-Identifier: Apache-2.0
// Budgets: a target per token, scaled by the tokens of the steps, against what a run took, brick by brick.
// Pure functions of a Report, which the caller owns; any thread. Times are nanoseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/results.hpp"

namespace plumb {

/// What one brick may take: for each token of a step, or for each step however many tokens it has.
struct BrickLimit {
    std::string brick;
    double ns = 0;
    bool per_step = false;
};

/// "lm_head=400us", "lm_head=0.4ms/token", "sampling=1ms/step"; units ns, us, ms, s.
Result<BrickLimit> parse_brick_limit(std::string_view words);

struct BudgetOptions {
    Phase phase = Phase::decode;
    double ns_per_token = 0; // 1e9 / tokens per second
    std::vector<BrickLimit> bricks;
};

/// An account row where bricks were off the CPU, negative: that time is in their rows and in idle.
inline constexpr const char* idle_in_bricks = "idle in bricks";

/// All calls of one brick, or one part of the period that is no brick of these steps: overlap, unattributed, idle and what rows hold or lack.
/// All per step, means.
struct BudgetRow {
    std::string name;
    bool account = false; // a part of the period, not a brick
    bool parent = false;  // some of its calls hold other bricks, which have rows of their own
    bool lap = false;     // some of its calls are laps, which are in `unattributed` too
    Figure step_ns;       // children included
    Figure self_ns;       // without them
    Figure token_ns;      // step_ns / tokens per step
    Figure budget_share;  // step_ns / budget of a step
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

[[nodiscard]] BudgetReport budget_of(const Report& report, const BudgetOptions& options);

/// What may be asked for on the command line.
struct BudgetQuestion {
    std::optional<double> tokens_per_second, ms_per_token;
    std::vector<std::string> bricks;
    Phase phase = Phase::decode;
};

template <class V>
void describe(V& v, BudgetQuestion& q) {
    v("tok/s", q.tokens_per_second, "Target: so many tokens per second, of all sequences together");
    v("ms/token", q.ms_per_token, "Target: so many milliseconds per token");
    v("brick", q.bricks, "Limit of a brick, per token or per step: lm_head=400us, sampling=1ms/step; may be repeated",
      {.value = "BRICK=TIME"});
    v("phase", q.phase, "Steps of this phase", {.choices = page::step_phases});
}

template <class V>
void describe(V& v, const BudgetRow& r) {
    v.type("budget row", "All calls of one brick, or one part of the period that is no brick. All per step, means.");
    v("name", r.name,
      "the brick; or `leaf calls in marked rows`, `bricks outside its steps`, `its bricks in other periods`, `overlap`, "
      "`unattributed`, `idle`, `idle in bricks`");
    v("account", r.account, "a part of the period, not a brick");
    v("parent", r.parent, "holds other bricks, which have rows of their own");
    v("lap", r.lap, "made of laps, all or in part");
    v("step_ns", r.step_ns, "children included");
    v("self_ns", r.self_ns, "without them");
    v("token_ns", r.token_ns, "`step_ns` / tokens per step");
    v("budget_share", r.budget_share, "`step_ns` / budget of a step");
    v("limited", r.limited, "a limit was asked for");
    v("allowed_ns", r.allowed_ns, "that limit; else its part of the budget when all shrink or grow alike");
    v("room_ns", r.room_ns, "`allowed_ns` - `step_ns`; negative: overrun");
    v("verdict", r.verdict, "only where `limited`", r.limited);
}

template <class V>
void describe(V& v, const BudgetReport& r) {
    v.type("budget", "A target per token against what a run took (`plumb budget`).");
    v("verdict", r.verdict, "of the period and of all limits");
    v("phase", r.phase, "");
    v("steps", r.steps, "counted ones, warm-up apart");
    v("ns_per_token", r.ns_per_token, "the target");
    v("tokens_per_step", r.tokens_per_step, "");
    v("tokens_per_second", r.tokens_per_second, "as measured");
    v("budget_ns", r.budget_ns, "of a step: `ns_per_token` × tokens per step");
    v("period_ns", r.period_ns, "of a step, mean");
    v("room_ns", r.room_ns, "budget - period; negative: overrun");
    v("period_verdict", r.period_verdict, "of the step as a whole");
    v("rows", r.rows, "");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const BudgetReport&) { return "plumb.budget/2"; }
inline Outcome outcome_of(const BudgetReport& report) noexcept { return report.verdict; }
[[nodiscard]] page::Page page_of(const BudgetReport& report, const TextOptions& options);

} // namespace plumb
