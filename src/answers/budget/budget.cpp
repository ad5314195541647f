// SPDX-License-Identifier: Apache-2.0
#include "answers/budget/budget.hpp"

#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/brick_words.hpp"
#include "analysis/no_step.hpp"
#include "answers/reading.hpp"
#include "stats/figure.hpp"

namespace plumb {
namespace {

using stats::absent;
using stats::measured;

constexpr double largest_limit_ns = 1e15;

std::optional<double> unit_of(std::string_view word) {
    return word == "ns"   ? std::optional(1.0)
           : word == "us" ? std::optional(1e3)
           : word == "ms" ? std::optional(1e6)
           : word == "s"  ? std::optional(1e9)
                          : std::nullopt;
}

/// What one brick took per step, from all rows that bear its name.
struct BrickTime {
    double step_ns = 0, self_ns = 0;
    bool partial = false; // sites of captured graphs that no sample timed
    bool self_known = true;
};

void add_row(BrickTime& time, const Row& row) {
    time.step_ns += row.sum_per_step_ns;
    time.partial = time.partial || row.sites_timed < row.sites;
    if (row.basis == RowBasis::replays) {
        time.self_known = time.self_known && !row.parent;
        time.self_ns += row.sum_per_step_ns;
    } else if (row.basis_steps != 0) {
        time.self_ns += row.time.self_ns / static_cast<double>(row.basis_steps);
    }
}

class Budget {
  public:
    Budget(const Report& report, const BudgetOptions& options) : source_(report), options_(options) {}
    [[nodiscard]] BudgetReport build();

  private:
    void judge_period();
    void add_bricks();
    void add_account();
    void add_limits_without_brick();
    void finish(BudgetRow& row, const BrickLimit* limit, bool partial);
    [[nodiscard]] const BrickLimit* limit_of(const std::string& brick) const;
    [[nodiscard]] double per_step(const BrickLimit& limit) const;

    const Report& source_;
    const BudgetOptions& options_;
    std::uint64_t lost_ = 0; // records
    const PhaseSummary* phase_ = nullptr;
    double tokens_per_step_ = 0; // 0: not known
    std::string reason_;         // why there is no budget of a step
    BudgetReport out_;
};

void Budget::judge_period() {
    out_.phase = options_.phase;
    out_.ns_per_token = options_.ns_per_token;
    for (const PhaseSummary& phase : source_.phases) {
        if (phase.phase == options_.phase) {
            phase_ = &phase;
        }
    }
    const std::string word = phase_word(options_.phase);
    if (phase_ == nullptr) {
        reason_ = analysis::no_step_of(options_.phase);
    } else if (phase_->steps == 0) {
        reason_ = "all " + word + " steps are warm-up";
    } else if (!phase_->tokens_per_second.value) {
        reason_ = phase_->tokens_per_second.reason;
    }
    out_.steps = phase_ == nullptr ? 0 : phase_->steps;
    if (out_.steps != 0) {
        out_.period_ns = measured(phase_->period.mean_ns);
        out_.tokens_per_second = phase_->tokens_per_second;
    } else {
        out_.period_ns = out_.tokens_per_second = absent(reason_);
    }
    if (!reason_.empty()) {
        out_.tokens_per_step = out_.budget_ns = out_.room_ns = absent(reason_);
        return;
    }
    tokens_per_step_ = static_cast<double>(phase_->tokens) / static_cast<double>(phase_->steps);
    out_.tokens_per_step = measured(tokens_per_step_);
    out_.budget_ns = measured(options_.ns_per_token * tokens_per_step_);
    out_.room_ns = measured(*out_.budget_ns.value - *out_.period_ns.value);
    out_.period_verdict = *out_.room_ns.value < 0 ? Outcome::fail : Outcome::pass;
}

const BrickLimit* Budget::limit_of(const std::string& brick) const {
    const BrickLimit* by_alias = nullptr;
    for (const BrickLimit& limit : options_.bricks) {
        if (limit.brick == brick) {
            return &limit;
        }
        if (analysis::names_brick(limit.brick, brick)) {
            by_alias = &limit;
        }
    }
    return by_alias;
}

double Budget::per_step(const BrickLimit& limit) const {
    return limit.per_step ? limit.ns : limit.ns * tokens_per_step_;
}

void Budget::finish(BudgetRow& row, const BrickLimit* limit, bool partial) {
    row.limited = limit != nullptr;
    if (!reason_.empty() && !(limit != nullptr && limit->per_step)) {
        row.token_ns = row.budget_share = row.allowed_ns = row.room_ns = absent(reason_);
        return;
    }
    if (reason_.empty()) {
        row.token_ns = row.step_ns.value ? measured(*row.step_ns.value / tokens_per_step_) : row.step_ns;
        row.budget_share = row.step_ns.value ? measured(*row.step_ns.value / *out_.budget_ns.value) : row.step_ns;
    } else {
        row.token_ns = row.budget_share = absent(reason_);
    }
    if (limit != nullptr) {
        row.allowed_ns = measured(per_step(*limit));
    } else if (!row.step_ns.value) {
        row.allowed_ns = row.step_ns;
    } else {
        row.allowed_ns = measured(*row.step_ns.value * *out_.budget_ns.value / *out_.period_ns.value);
    }
    row.room_ns = row.step_ns.value ? measured(*row.allowed_ns.value - *row.step_ns.value) : row.step_ns;
    if (limit == nullptr || !row.room_ns.value) {
        return;
    }
    row.verdict = *row.room_ns.value < 0 ? Outcome::fail : partial || lost_ != 0 ? Outcome::unknown : Outcome::pass;
    if (row.verdict == Outcome::unknown) {
        row.room_ns = absent(partial ? "not all of its sites in captured graphs were timed"
                                     : std::to_string(lost_) + " records were lost, its own may be among them");
    }
}

void Budget::add_bricks() {
    std::vector<BrickTime> times;
    std::map<std::string, std::size_t> places;
    for (const Row& row : source_.bricks) {
        if (row.key.phase != options_.phase || phase_ == nullptr) {
            continue;
        }
        const std::size_t at = places.try_emplace(row.key.name, places.size()).first->second;
        if (at == out_.rows.size()) {
            out_.rows.emplace_back().name = row.key.name;
            times.emplace_back();
        }
        out_.rows[at].parent = out_.rows[at].parent || row.parent;
        out_.rows[at].lap = out_.rows[at].lap || row.lap;
        add_row(times[at], row);
    }
    for (std::size_t i = 0; i < out_.rows.size(); ++i) {
        BudgetRow& row = out_.rows[i];
        if (out_.steps == 0) {
            row.step_ns = row.self_ns = absent(reason_);
        } else {
            row.step_ns = measured(times[i].step_ns);
            row.self_ns = times[i].self_known ? measured(times[i].self_ns)
                                              : absent("of sites in captured graphs only the whole time is known");
        }
        finish(row, limit_of(row.name), times[i].partial);
    }
}

void Budget::add_account() {
    if (out_.steps == 0) {
        return;
    }
    const auto steps = static_cast<double>(out_.steps);
    const WallAccount& wall = phase_->wall;
    const bool host = analysis::wall_is_of_the_host(*phase_);
    double in_marked_ns = analysis::leaf_calls_ns(source_, options_.phase);
    for (const BudgetRow& row : out_.rows) {
        in_marked_ns -= row.parent || row.lap ? 0 : *row.step_ns.value;
    }
    const auto add = [this](const char* name, double step_ns, bool always) {
        if (!always && std::abs(step_ns) < 1) {
            return;
        }
        BudgetRow& row = out_.rows.emplace_back();
        row.name = name;
        row.account = true;
        row.step_ns = row.self_ns = measured(step_ns);
        finish(row, nullptr, false);
    };
    add(analysis::leaf_calls_in_marked, in_marked_ns, false);
    add(analysis::bricks_outside, wall.bricks_outside_ns / steps, false);
    add(analysis::bricks_elsewhere, -wall.bricks_elsewhere_ns / steps, false);
    add("overlap", -wall.overlap_ns / steps, true);
    add(host ? "host: unattributed" : "unattributed", wall.unattributed_ns / steps, true);
    add(host ? "host: idle" : "idle", wall.idle_ns / steps, true);
    add(idle_in_bricks, -wall.bricks_idle_ns / steps, false);
}

void Budget::add_limits_without_brick() {
    for (const BrickLimit& limit : options_.bricks) {
        bool found = false;
        for (const BudgetRow& row : out_.rows) {
            found = found || (!row.account && limit_of(row.name) == &limit);
        }
        if (found) {
            continue;
        }
        BudgetRow& row = out_.rows.emplace_back();
        row.name = limit.brick;
        row.limited = true;
        row.step_ns = row.self_ns = row.token_ns = row.budget_share = row.room_ns =
            absent("no brick of this name in the " + std::string(phase_word(options_.phase)) + " steps");
        row.allowed_ns = limit.per_step || reason_.empty() ? measured(per_step(limit)) : absent(reason_);
    }
}

BudgetReport Budget::build() {
    for (const LossRow& loss : source_.losses) {
        lost_ += loss.count;
    }
    judge_period();
    add_bricks();
    add_account();
    add_limits_without_brick();
    out_.verdict = out_.period_verdict;
    for (const BudgetRow& row : out_.rows) {
        if (row.limited) {
            out_.verdict = worse(out_.verdict, row.verdict);
        }
    }
    if (lost_ != 0) {
        out_.notes.push_back(
            std::to_string(lost_) +
            " records were lost, so a brick may have taken more than its row says; plumb report names them.");
    }
    if (phase_ != nullptr && analysis::wall_is_of_the_host(*phase_)) {
        out_.notes.emplace_back(
            "Device work that is timed in some steps or replays only has rows per timed step, and is not in the "
            "host's unattributed and idle time: the rows do not add up to the period.");
    }
    if (phase_ != nullptr && phase_->all_sampled) {
        out_.notes.emplace_back("Every step was made slower by sampling, so the period holds that too.");
    }
    return std::move(out_);
}

} // namespace

Result<BrickLimit> parse_brick_limit(std::string_view words) {
    const Error wrong{ErrorCode::invalid_argument,
                      "a brick's budget is written like lm_head=400us, lm_head=0.4ms/token or "
                      "sampling=1ms/step, not \"" +
                          std::string(words) + "\""};
    const auto parts = analysis::assignment_of(words);
    if (!parts || (!parts->per.empty() && parts->per != "token" && parts->per != "step")) {
        return wrong;
    }
    double number = 0;
    const char* end = parts->value.data() + parts->value.size();
    const auto read = std::from_chars(parts->value.data(), end, number);
    const auto unit = unit_of({read.ptr, static_cast<std::size_t>(end - read.ptr)});
    if (read.ec != std::errc() || !unit || !(number > 0) || !(number * *unit <= largest_limit_ns)) {
        return wrong;
    }
    return BrickLimit{std::string(parts->brick), number * *unit, parts->per == "step"};
}

BudgetReport budget_of(const Report& report, const BudgetOptions& options) { return Budget(report, options).build(); }

namespace {

Result<BudgetOptions> options_of(const BudgetQuestion& question) {
    const auto wrong = [](const char* sentence) {
        return Error{ErrorCode::invalid_argument, sentence};
    };
    if (question.tokens_per_second.has_value() == question.ms_per_token.has_value()) {
        return wrong("give the target once: --tok/s 125 or --ms/token 8");
    }
    const double target = question.tokens_per_second.value_or(question.ms_per_token.value_or(0));
    BudgetOptions options;
    options.ns_per_token = question.ms_per_token ? target * 1e6 : 1e9 / target;
    if (!(target > 0) || !std::isfinite(target) || !(options.ns_per_token >= 1e-3 && options.ns_per_token <= 1e15)) {
        return wrong(
            "--tok/s takes a number from 1e-6 to 1e12, such as 125; --ms/token one from 1e-9 to 1e9, such as 8");
    }
    options.phase = question.phase;
    for (const std::string& words : question.bricks) {
        const Result<BrickLimit> limit = parse_brick_limit(words);
        if (!limit.ok()) {
            return limit.error();
        }
        for (const BrickLimit& other : options.bricks) {
            if (other.brick == limit->brick) {
                return Error{ErrorCode::invalid_argument, "--brick gives " + limit->brick + " two limits; give it one"};
            }
        }
        options.bricks.push_back(*limit);
    }
    return options;
}

Result<answers::Pending<BudgetReport>> begin(answers::Reading& reading, const BudgetQuestion& question) {
    const Result<BudgetOptions> options = options_of(question);
    if (!options.ok()) {
        return options.error();
    }
    analysis::ReportReader& reader = reading.report();
    return answers::Pending<BudgetReport>(
        [&reader, number = reader.ask({}), options = *options] { return budget_of(reader.take(number), options); });
}

} // namespace

const answers::Entry& budget_answer() {
    static const answers::Entry entry = answers::joining_entry<BudgetQuestion, BudgetReport, begin>(
        "budget", "Hold a run against a target per token: who breaks the budget, where there is room");
    return entry;
}

} // namespace plumb
