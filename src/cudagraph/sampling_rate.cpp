// SPDX-License-Identifier: Apache-2.0
#include "cudagraph/sampling_rate.hpp"

#include <limits>

namespace plumb::cudagraph {

void SamplingRate::learn(std::size_t stamps, double site_cost_ns, double step_ns) {
    if (fixed_ != 0 || !(site_cost_ns >= 0) || !(step_ns > 0)) {
        return;
    }
    const double needed = static_cast<double>(stamps) * site_cost_ns / (share * step_ns);
    std::uint64_t every = most_often;
    while (every < rarest && static_cast<double>(every) < needed) {
        every *= 2;
    }
    every_ = every;
}

std::size_t SamplingRate::most_stamps(std::uint64_t fixed, double site_cost_ns, double step_ns) {
    if (fixed == 0 || !(site_cost_ns > 0) || !(step_ns > 0)) {
        return std::numeric_limits<std::size_t>::max();
    }
    return static_cast<std::size_t>(share * static_cast<double>(fixed) * step_ns / site_cost_ns);
}

} // namespace plumb::cudagraph
