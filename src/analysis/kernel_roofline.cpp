// SPDX-License-Identifier: Apache-2.0
#include "analysis/kernel_roofline.hpp"

#include <algorithm>
#include <cmath>

#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

bool usable(double value) { return std::isfinite(value) && value > 0; }

} // namespace

Figure roofline_share(double bytes, double flops, double duration_ns, const std::optional<KernelPeaks>& peaks) {
    if (std::isnan(bytes) || std::isnan(flops))
        return stats::absent("the kernel does not say its bytes and flops");
    if (!usable(bytes) || !usable(flops))
        return stats::absent("without bytes or without flops there is no intensity");
    if (!usable(duration_ns))
        return stats::absent("the kernel has no time of its own");
    if (!peaks || !usable(peaks->bytes_per_second) || !usable(peaks->flops_per_second))
        return stats::absent("the recording holds no measured peaks of what it ran on");
    const double allowed = std::min(peaks->flops_per_second, flops / bytes * peaks->bytes_per_second);
    const double share = flops / (duration_ns * 1e-9) / allowed;
    return std::isfinite(share) ? stats::measured(share) : stats::absent("the work is beyond what a number can hold");
}

} // namespace plumb::analysis
