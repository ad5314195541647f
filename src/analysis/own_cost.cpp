// SPDX-License-Identifier: Apache-2.0
#include "analysis/own_cost.hpp"

#include <cmath>
#include <optional>
#include <string_view>

#include "analysis/imported_words.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

Figure price(const recording::Metadata& metadata, std::string_view name) {
    for (const auto& [key, value] : metadata.costs) {
        if ((key == name || key.starts_with(std::string(name) + ".")) && std::isfinite(value) && value >= 0) {
            return stats::measured(value);
        }
    }
    return stats::absent("not measured when the run started");
}

} // namespace

OwnCost own_cost(const recording::Metadata& metadata, const recording::Counters& counters,
                 const RecordedCounts& recorded, bool incomplete) {
    OwnCost cost;
    cost.scope_ns = price(metadata, "scope");
    cost.lap_ns = price(metadata, "lap");
    cost.floor_ns = price(metadata, "floor");
    const Figure cpu_stamp_ns = price(metadata, "cpu_time");
    cost.drain_cpu_ns = counters.drain_cpu_ns != 0 ? stats::measured(static_cast<double>(counters.drain_cpu_ns))
                                                   : stats::absent("the recording ends before the drain noted it");
    const auto wall = static_cast<double>(recorded.last_ns) - static_cast<double>(recorded.first_ns);
    if (!cost.scope_ns.value || (!cost.lap_ns.value && recorded.laps != 0)) {
        cost.wall_share = stats::absent(is_imported(metadata) ? cost_of_another_tool : no_price);
    } else if (incomplete) {
        cost.wall_share = stats::absent(cost_of_missing);
    } else if (!cost.drain_cpu_ns.value) {
        cost.wall_share = stats::absent(cost.drain_cpu_ns.reason);
    } else if (!(wall > 0)) {
        cost.wall_share = stats::absent("nothing was recorded that takes time");
    } else if (*cost.drain_cpu_ns.value > wall) {
        cost.wall_share =
            stats::absent("the thread that wrote the recording ran for longer than all that was recorded");
    } else {
        const double ns = static_cast<double>(recorded.scopes) * *cost.scope_ns.value +
                          static_cast<double>(recorded.laps) * cost.lap_ns.value.value_or(0) +
                          static_cast<double>(recorded.cpu_stamps) * cpu_stamp_ns.value.value_or(0) +
                          *cost.drain_cpu_ns.value;
        cost.wall_share = stats::measured(ns / wall);
    }
    return cost;
}

} // namespace plumb::analysis
