// SPDX-License-Identifier: Apache-2.0
#include "analysis/phase_statistics.hpp"

#include <string>

#include "analysis/imported_words.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {

void PhaseStatistics::add(const resolve::ResolvedStep& step, const WallSums& wall) {
    if (step.warmup) {
        ++warmup_steps_;
        return;
    }
    timed_steps_ += step.device_timed ? 1 : 0;
    if (step.left_out) {
        ++sampled_steps_;
        return;
    }
    ++steps_;
    prefill_tokens_ += step.prefill_tokens;
    decode_tokens_ += step.decode_tokens;
    steps_without_tokens_ += step.prefill_tokens + step.decode_tokens == 0 ? 1 : 0;
    sequences_ += step.sequences;
    periods_.add(static_cast<std::uint64_t>(step.end_ns - step.period_begin_ns));
    spans_.add(static_cast<std::uint64_t>(step.end_ns - step.begin_ns));
    wall_.add(wall);
    if (step.kernel_stretch_ns != 0) {
        ++stamped_steps_;
        kernels_ns_ += step.kernels_ns;
        kernel_stretch_ns_ += step.kernel_stretch_ns;
    }
}

std::string PhaseStatistics::crossed_words() const {
    return std::to_string(crossed_) + " times a step ran at the same time as one of another phase, in " +
           std::to_string(steps_) + " steps";
}

void PhaseStatistics::add_device(const WallSums& device) {
    ++device_steps_;
    device_.add(device);
}

PhaseBase PhaseStatistics::timed_base(Phase phase) const {
    PhaseBase timed = base(phase);
    if (timed_steps_ == 0) {
        timed.reason = timed.reason.empty() ? "no step of this phase was timed" : timed.reason;
        timed.steps = 0;
    } else if (timed.steps != 0) {
        timed.period_ns *= static_cast<double>(timed_steps_) / static_cast<double>(timed.steps);
        timed.steps = timed_steps_;
    }
    return timed;
}

PhaseBase PhaseStatistics::base(Phase phase) const {
    PhaseBase base;
    base.steps = steps_;
    base.period_ns = static_cast<double>(wall_.period);
    if (phase == Phase::none) {
        base.reason = "belongs to no complete step";
    } else if (steps_ == 0) {
        base.reason = warmup_steps_ != 0 ? "all steps are warm-up" : "no complete step of this phase";
    }
    return base;
}

Figure token_rate(std::uint64_t tokens, std::uint64_t steps, std::uint64_t without_tokens, std::int64_t period_ns,
                  const std::string& crossed) {
    if (tokens == 0) {
        return stats::absent(no_tokens);
    }
    if (without_tokens != 0) {
        return stats::absent(std::to_string(without_tokens) + " of " + std::to_string(steps) +
                             " steps carry no tokens (plumb::tokens(n) gives them)");
    }
    if (!crossed.empty()) {
        return stats::absent(crossed);
    }
    if (period_ns <= 0) {
        return stats::absent("the steps took no time on this clock");
    }
    return stats::measured(static_cast<double>(tokens) * 1e9 / static_cast<double>(period_ns));
}

Figure PhaseStatistics::tokens_per_second() const {
    if (steps_ == 0) {
        return stats::absent("all steps are warm-up");
    }
    return token_rate(prefill_tokens_ + decode_tokens_, steps_, steps_without_tokens_, wall_.period,
                      crossed() ? crossed_words() : std::string());
}

WallAccount PhaseStatistics::account() const {
    WallAccount account;
    account.period_ns = static_cast<double>(wall_.period);
    account.busy_ns = static_cast<double>(wall_.busy);
    account.idle_ns = static_cast<double>(wall_.idle());
    account.union_ns = static_cast<double>(wall_.united);
    account.sum_ns = static_cast<double>(wall_.sum);
    account.bricks_idle_ns = static_cast<double>(wall_.bricks_idle);
    account.bricks_outside_ns = static_cast<double>(wall_.bricks_outside);
    account.overlap_ns = static_cast<double>(wall_.overlap());
    account.unattributed_ns = static_cast<double>(wall_.unattributed());
    account.lap_union_ns = static_cast<double>(wall_.lap_union);
    account.off_cpu_uncertain_ns = static_cast<double>(wall_.uncertain);
    if (steps_ == 0) {
        account.coverage = stats::absent("all steps are warm-up");
    } else if (wall_.busy <= 0) {
        account.coverage = stats::absent("no thread was seen on the CPU");
    } else {
        account.coverage = stats::measured(static_cast<double>(wall_.united) / static_cast<double>(wall_.busy));
    }
    return account;
}

PhaseSummary PhaseStatistics::finish(Phase phase) const {
    PhaseSummary summary;
    summary.phase = phase;
    summary.steps = steps_;
    summary.warmup_steps = warmup_steps_;
    summary.sampled_steps = sampled_steps_;
    summary.tokens = prefill_tokens_ + decode_tokens_;
    summary.prefill_tokens = prefill_tokens_;
    summary.decode_tokens = decode_tokens_;
    summary.sequences = sequences_;
    summary.tokens_per_second = tokens_per_second();
    summary.period = periods_.finish();
    summary.span = spans_.finish();
    summary.wall = account();
    if (summary.stamped_steps = stamped_steps_; stamped_steps_ != 0) {
        const auto steps = static_cast<double>(stamped_steps_);
        summary.kernels_per_step_ns = stats::measured(static_cast<double>(kernels_ns_) / steps);
        summary.kernel_stretch_per_step_ns = stats::measured(static_cast<double>(kernel_stretch_ns_) / steps);
    }
    return summary;
}

} // namespace plumb::analysis
