// SPDX-License-Identifier: Apache-2.0
// How far a kernel is from what the machine allows. Pure; no thread rule.
#pragma once

#include <optional>

#include "plumb/results.hpp"

namespace plumb::analysis {

/// What was measured where the run ran.
struct KernelPeaks {
    double bytes_per_second = 0;
    double flops_per_second = 0;
};

/// Share of its roofline that a kernel reached: 1 is all of min(peak flops, intensity × peak bandwidth). Absent with a
/// reason where work, time or peaks are not known, or there is no work to compare. NaN stands for unknown work.
[[nodiscard]] Figure roofline_share(double bytes, double flops, double duration_ns,
                                    const std::optional<KernelPeaks>& peaks);

} // namespace plumb::analysis
