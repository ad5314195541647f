// SPDX-License-Identifier: Apache-2.0
// Percentile bootstrap intervals of a median or mean, and of the ratio of two of them. Pure functions: the same seed gives
// the same interval. Errors as in sample_check.hpp; fewer than 3 values a side give no interval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "plumb/result.hpp"
#include "stats/student_t.hpp"

namespace plumb::stats {

struct BootstrapOptions {
    double confidence = 0.95;
    std::size_t resamples = 2000;
    std::uint64_t seed = 1;
};

[[nodiscard]] double mean(std::span<const double> values); // REQUIRES: not empty

[[nodiscard]] Result<ConfidenceInterval> bootstrap_median(std::span<const double> values,
                                                          const BootstrapOptions& options = {});
[[nodiscard]] Result<ConfidenceInterval> bootstrap_mean(std::span<const double> values,
                                                        const BootstrapOptions& options = {});
/// median(changed) / median(base), each side resampled on its own.
[[nodiscard]] Result<ConfidenceInterval> bootstrap_median_ratio(std::span<const double> base,
                                                                std::span<const double> changed,
                                                                const BootstrapOptions& options = {});
[[nodiscard]] Result<ConfidenceInterval> bootstrap_mean_ratio(std::span<const double> base,
                                                              std::span<const double> changed,
                                                              const BootstrapOptions& options = {});

} // namespace plumb::stats
