// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare_change.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "stats/bootstrap.hpp"
#include "stats/figure.hpp"
#include "stats/median.hpp"
#include "stats/sample_check.hpp"

namespace plumb::analysis {
namespace {

struct SideMoments {
    double n = 0, mean = 0, squares = 0;
};

SideMoments side_of(std::span<const double> values) {
    SideMoments side;
    side.n = static_cast<double>(values.size());
    side.mean = stats::mean(values);
    for (const double value : values) {
        side.squares += (value - side.mean) * (value - side.mean);
    }
    return side;
}

std::string too_few(std::size_t base, std::size_t changed) {
    return base == changed ? std::to_string(base) + (base == 1 ? " run" : " runs") + " a side, 3 are needed"
                           : std::to_string(base) + " and " + std::to_string(changed) + " runs, 3 a side are needed";
}

double weighted_median(std::vector<std::pair<double, double>>& values) {
    std::sort(values.begin(), values.end());
    double half = 0;
    for (const auto& [value, weight] : values) {
        half += weight / 2;
    }
    for (const auto& [value, weight] : values) {
        half -= weight;
        if (half <= 0) {
            return value;
        }
    }
    return values.back().first;
}

} // namespace

LogChange log_change(std::span<const double> base_logs, std::span<const double> changed_logs, double confidence) {
    LogChange change;
    if (base_logs.size() < stats::fewest_runs || changed_logs.size() < stats::fewest_runs) {
        change.reason = too_few(base_logs.size(), changed_logs.size());
        return change;
    }
    for (const auto logs : {base_logs, changed_logs}) {
        if (Status usable = stats::check_sample(logs, confidence); !usable.ok()) {
            change.reason = "some runs have no time for it";
            return change;
        }
    }
    const SideMoments base = side_of(base_logs);
    const SideMoments changed = side_of(changed_logs);
    const double base_part = base.squares / (base.n - 1) / base.n;
    const double changed_part = changed.squares / (changed.n - 1) / changed.n;
    const double variance = base_part + changed_part;
    change.known = true;
    change.noise = std::sqrt((base.squares + changed.squares) / (base.n + changed.n - 2));
    const double estimate = changed.mean - base.mean;
    double reach = 0;
    if (variance > 0) {
        // Welch and Satterthwaite: the sides may differ in spread.
        const double df = variance * variance /
                          (base_part * base_part / (base.n - 1) + changed_part * changed_part / (changed.n - 1));
        reach = stats::student_t_quantile(0.5 + confidence / 2, df) * std::sqrt(variance);
    }
    change.interval = {estimate, estimate - reach, estimate + reach};
    return change;
}

LogChange ratio_change(std::span<const double> base, std::span<const double> changed, double confidence) {
    std::vector<double> logs[2];
    for (std::size_t side = 0; side < 2; ++side) {
        for (const double value : side == 0 ? base : changed) {
            logs[side].push_back(std::log(value));
        }
    }
    return log_change(logs[0], logs[1], confidence);
}

Change as_share(const LogChange& change) {
    if (!change.known) {
        const Figure none = stats::absent(change.reason);
        return {none, none, none};
    }
    const auto share = [](double log) {
        return stats::measured(std::expm1(log));
    };
    return {share(change.interval.estimate), share(change.interval.low), share(change.interval.high)};
}

Judgement judge(const LogChange& change, double same_band) {
    if (!change.known) {
        return {Verdict::undecided, change.reason};
    }
    const stats::ConfidenceInterval& interval = change.interval;
    // Runs that all read alike (a coarse clock) have no spread to judge by: an interval of width 0 proves nothing.
    if (!(change.noise > 0)) {
        return {Verdict::undecided, "its runs do not differ at all, so there is no noise to judge by"};
    }
    if (interval.low > std::log1p(-same_band) && interval.high < std::log1p(same_band)) {
        return {Verdict::same, {}};
    }
    if (std::fabs(interval.estimate) > change.noise) {
        if (interval.low > 0) {
            return {Verdict::slow, {}};
        }
        if (interval.high < 0) {
            return {Verdict::fast, {}};
        }
    }
    return {Verdict::undecided, "the runs differ too much among themselves"};
}

std::vector<double> pace_without(std::size_t brick, const std::vector<std::vector<double>>& logs,
                                 const std::vector<double>& weights) {
    constexpr std::size_t fewest_others = 3;
    if (logs.size() < fewest_others + 1) {
        return {};
    }
    const std::size_t runs = logs[brick].size();
    std::vector<double> middles;
    for (const auto& row : logs) {
        middles.push_back(stats::median(row));
    }
    std::vector<double> pace(runs);
    std::vector<std::pair<double, double>> others;
    for (std::size_t run = 0; run < runs; ++run) {
        others.clear();
        for (std::size_t other = 0; other < logs.size(); ++other) {
            if (other != brick) {
                others.emplace_back(logs[other][run] - middles[other], weights[other]);
            }
        }
        pace[run] = weighted_median(others);
    }
    return pace;
}

} // namespace plumb::analysis
