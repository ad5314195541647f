// SPDX-License-Identifier: Apache-2.0
#include "stats/student_t.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "stats/sample_check.hpp"

namespace plumb::stats {
namespace {

// Continued fraction of the incomplete beta function by Lentz's method; converges in a few steps for x < (a+1)/(a+b+2).
double beta_fraction(double a, double b, double x) {
    constexpr double tiny = 1e-300;
    const auto away_from_zero = [](double value) {
        return std::fabs(value) < tiny ? tiny : value;
    };
    double c = 1;
    double d = 1 / away_from_zero(1 - (a + b) * x / (a + 1));
    double result = d;
    for (int m = 1; m <= 500; ++m) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        result *= d * c;
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        result *= d * c;
        if (std::fabs(d * c - 1) < 1e-15) {
            break;
        }
    }
    return result;
}

double incomplete_beta(double a, double b, double x) {
    if (x <= 0) {
        return 0;
    }
    if (x >= 1) {
        return 1;
    }
    const double front =
        std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
    if (x < (a + 1) / (a + b + 2)) {
        return front * beta_fraction(a, b, x) / a;
    }
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

} // namespace

double student_t_cdf(double t, double df) {
    const double both_tails = incomplete_beta(df / 2, 0.5, df / (df + t * t));
    return t >= 0 ? 1 - both_tails / 2 : both_tails / 2;
}

double student_t_quantile(double p, double df) {
    if (p < 0.5) {
        return -student_t_quantile(1 - p, df);
    }
    double low = 0;
    double high = 1;
    while (student_t_cdf(high, df) < p && high < 1e12) {
        high *= 2;
    }
    // Bisection to the last bit: not fast, never wrong.
    for (int i = 0; i < 200 && high - low > 1e-14 * high; ++i) {
        const double middle = low + (high - low) / 2;
        (student_t_cdf(middle, df) < p ? low : high) = middle;
    }
    return low + (high - low) / 2;
}

Result<ConfidenceInterval> mean_interval(std::span<const double> values, double confidence) {
    if (Status usable = check_sample(values, confidence); !usable.ok()) {
        return usable.error();
    }
    const auto n = static_cast<double>(values.size());
    double mean = 0;
    for (const double value : values) {
        mean += value / n;
    }
    double squares = 0;
    for (const double value : values) {
        squares += (value - mean) * (value - mean);
    }
    const double standard_error = std::sqrt(squares / (n - 1) / n);
    const double reach = student_t_quantile(0.5 + confidence / 2, n - 1) * standard_error;
    return ConfidenceInterval{mean, mean - reach, mean + reach};
}

} // namespace plumb::stats
