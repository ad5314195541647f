// SPDX-License-Identifier: Apache-2.0
#include "analysis/processor_counters.hpp"

#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

Figure total_of(const recording::Counters& counters, const char* name) {
    for (const auto& [key, value] : counters.hardware) {
        if (key == name) {
            return stats::measured(static_cast<double>(value));
        }
    }
    return stats::absent(counters.hardware_reason.empty() ? std::string(name) + " were not counted"
                                                          : counters.hardware_reason);
}

/// above / below; absent with the reason of whichever is missing.
Figure ratio(const Figure& above, const Figure& below, const char* nothing) {
    if (!above.value || !below.value) {
        return stats::absent(above.value ? below.reason : above.reason);
    }
    if (!(*below.value > 0)) {
        return stats::absent(nothing);
    }
    return stats::measured(*above.value / *below.value);
}

} // namespace

std::optional<ProcessorCounters> processor_counters(const recording::Counters& counters) {
    if (counters.hardware.empty() && counters.hardware_reason.empty()) {
        return std::nullopt;
    }
    ProcessorCounters result;
    result.cycles = total_of(counters, "cycles");
    result.instructions = total_of(counters, "instructions");
    result.cache_references = total_of(counters, "cache_references");
    result.cache_misses = total_of(counters, "cache_misses");
    result.instructions_per_cycle = ratio(result.instructions, result.cycles, "no cycle was counted");
    result.cache_miss_share = ratio(result.cache_misses, result.cache_references, "no cache reference was counted");
    return result;
}

} // namespace plumb::analysis
