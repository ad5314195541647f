// SPDX-License-Identifier: Apache-2.0
#include "stats/bootstrap.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "stats/median.hpp"
#include "stats/sample_check.hpp"

namespace plumb::stats {
namespace {

using Statistic = double (*)(std::span<const double>);

// SplitMix64 (Steele, Lea, Flood 2014): a counter and a mixer, which is all that resampling needs.
class ResampleRandom {
  public:
    explicit ResampleRandom(std::uint64_t seed) : state_(seed) {}
    std::size_t below(std::size_t limit) {
        state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return static_cast<std::size_t>((z ^ (z >> 31)) % limit);
    }

  private:
    std::uint64_t state_;
};

double of_resample(std::span<const double> values, Statistic statistic, ResampleRandom& random,
                   std::vector<double>& scratch) {
    scratch.resize(values.size());
    for (double& value : scratch) {
        value = values[random.below(values.size())];
    }
    return statistic(scratch);
}

ConfidenceInterval middle_of(std::vector<double> estimates, double estimate, double confidence) {
    std::sort(estimates.begin(), estimates.end());
    const auto last = static_cast<double>(estimates.size() - 1);
    const auto at = [&](double fraction) {
        return estimates[static_cast<std::size_t>(std::lround(fraction * last))];
    };
    return {estimate, at((1 - confidence) / 2), at((1 + confidence) / 2)};
}

Status check_options(const BootstrapOptions& options) {
    if (options.resamples < 100 || options.resamples > 1000000) {
        return Error{ErrorCode::invalid_argument, "A bootstrap takes 100 to 1000000 resamples; 2000 is usual."};
    }
    return {};
}

/// `estimate` gives what one resample says.
template <class Estimate>
Result<ConfidenceInterval> interval_of(const BootstrapOptions& options, double measured, Estimate estimate) {
    if (Status usable = check_options(options); !usable.ok()) {
        return usable.error();
    }
    ResampleRandom random(options.seed);
    std::vector<double> scratch;
    std::vector<double> estimates(options.resamples);
    for (double& one : estimates) {
        one = estimate(random, scratch);
    }
    return middle_of(std::move(estimates), measured, options.confidence);
}

Result<ConfidenceInterval> one_sample(std::span<const double> values, Statistic statistic,
                                      const BootstrapOptions& options) {
    if (Status usable = check_sample(values, options.confidence); !usable.ok()) {
        return usable.error();
    }
    return interval_of(options, statistic(values), [&](ResampleRandom& random, std::vector<double>& scratch) {
        return of_resample(values, statistic, random, scratch);
    });
}

Result<ConfidenceInterval> ratio(std::span<const double> base, std::span<const double> changed, Statistic statistic,
                                 const BootstrapOptions& options) {
    for (const auto side : {base, changed}) {
        if (Status usable = check_sample(side, options.confidence); !usable.ok()) {
            return usable.error();
        }
        if (std::any_of(side.begin(), side.end(), [](double value) { return !(value > 0); })) {
            return Error{ErrorCode::invalid_argument, "A ratio needs values above 0; leave out runs that failed."};
        }
    }
    const double measured = statistic(changed) / statistic(base);
    return interval_of(options, measured, [&](ResampleRandom& random, std::vector<double>& scratch) {
        const double below = of_resample(base, statistic, random, scratch);
        return of_resample(changed, statistic, random, scratch) / below;
    });
}

} // namespace

double mean(std::span<const double> values) {
    double sum = 0;
    for (const double value : values) {
        sum += value;
    }
    return sum / static_cast<double>(values.size());
}

Result<ConfidenceInterval> bootstrap_median(std::span<const double> values, const BootstrapOptions& options) {
    return one_sample(values, median, options);
}

Result<ConfidenceInterval> bootstrap_mean(std::span<const double> values, const BootstrapOptions& options) {
    return one_sample(values, mean, options);
}

Result<ConfidenceInterval> bootstrap_median_ratio(std::span<const double> base, std::span<const double> changed,
                                                  const BootstrapOptions& options) {
    return ratio(base, changed, median, options);
}

Result<ConfidenceInterval> bootstrap_mean_ratio(std::span<const double> base, std::span<const double> changed,
                                                const BootstrapOptions& options) {
    return ratio(base, changed, mean, options);
}

} // namespace plumb::stats
