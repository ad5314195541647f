// SPDX-License-Identifier: Apache-2.0
#include "answers/report/phase_words.hpp"

#include "analysis/brick_words.hpp"
#include "answers/report/brick_table.hpp"

namespace plumb::answers {

using namespace page;

std::string plural(std::uint64_t count, std::string_view word) {
    return grouped(count) + " " + std::string(word) + (count == 1 ? "" : "s");
}

std::string percent(const Figure& figure, double scale) {
    return figure.value ? fixed(*figure.value * scale, 1) + " %" : std::string(not_available);
}

std::string milliseconds(double ns) { return fixed(ns / ns_per_ms, decimals_for(ns / ns_per_ms, 3, 1, 5)); }

std::string steps_words(const PhaseSummary& phase) {
    std::string words = plural(phase.steps, "step");
    if (phase.warmup_steps > 0) {
        words += " (" + grouped(phase.warmup_steps) + " warm-up apart)";
    }
    return words;
}

std::string period_words(const PhaseSummary& phase) {
    // One token a step is the latency of a token; more are a batch, whose step is what can be said. Where there is a rate, no
    // step is without tokens.
    const bool one_each = phase.tokens == phase.steps && phase.tokens_per_second.value;
    const std::string unit = one_each ? " ms/tok" : " ms/step";
    const Distribution& period = phase.period;
    if (!period.p50_ns.value) {
        return period.count == 0
                   ? "p50 n/a"
                   : "mean " + milliseconds(period.mean_ns) + unit + " (n = " + grouped(period.count) + ")";
    }
    return "p50 " + milliseconds(*period.p50_ns.value) + unit + "  p90 " +
           (period.p90_ns.value ? milliseconds(*period.p90_ns.value) : std::string(not_available));
}

std::string tokens_words(const PhaseSummary& phase) {
    const Figure& rate = phase.tokens_per_second;
    return figure_text(rate, 1, decimals_for(rate.value.value_or(0), 3, 0, 3)) + " tok/s";
}

std::string coverage_words(const PhaseSummary& phase) {
    if (!phase.wall.coverage.value) {
        return "coverage " + std::string(not_available);
    }
    return "coverage " + percent(phase.wall.coverage, 100) +
           (analysis::wall_is_of_the_host(phase) ? " of host busy" : " of busy");
}

} // namespace plumb::answers
