// SPDX-License-Identifier: Apache-2.0
// Student's t distribution, and the interval of a mean it gives. Pure functions.
#pragma once

#include <span>

#include "plumb/result.hpp"

namespace plumb::stats {

/// An interval and the estimate inside it.
struct ConfidenceInterval {
    double estimate = 0;
    double low = 0;
    double high = 0;
};

/// P(T <= t) with `df` degrees of freedom. REQUIRES: df > 0.
[[nodiscard]] double student_t_cdf(double t, double df);
/// The t with P(T <= t) = p. REQUIRES: 0 < p < 1, df > 0.
[[nodiscard]] double student_t_quantile(double p, double df);
/// Two-sided interval of the mean. Error: fewer than 3 values, a value that is not finite, a confidence outside (0, 1).
[[nodiscard]] Result<ConfidenceInterval> mean_interval(std::span<const double> values, double confidence = 0.95);

} // namespace plumb::stats
