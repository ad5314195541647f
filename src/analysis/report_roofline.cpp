// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_roofline.hpp"

#include <map>
#include <tuple>

#include "analysis/roofline.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

/// Bytes that a brick moves in a step, in all its layers: what must stay in a cache for the next step to find it there.
using StepBytes = std::map<std::tuple<Phase, std::string, bool, std::string>, double>;

std::tuple<Phase, std::string, bool, std::string> brick_of(const Row& row) {
    return {row.key.phase, row.key.name, row.lap, row.source};
}

StepBytes bytes_of_bricks(const Report& report) {
    StepBytes bytes;
    for (const Row& row : report.bricks) {
        if (row.bytes_per_step.value)
            bytes[brick_of(row)] += *row.bytes_per_step.value;
    }
    return bytes;
}

/// Rates are of the calls that gave their work; so are bytes and flops here.
RoofInput input_of(const Row& row, const Report& report, const StepBytes& bytes) {
    RoofInput input;
    input.duration_ns = row.time.mean_ns;
    if (row.gigabytes_per_second.value)
        input.bytes = *row.gigabytes_per_second.value * input.duration_ns;
    if (row.teraflops.value)
        input.flops = *row.teraflops.value * 1000 * input.duration_ns;
    if (const auto found = bytes.find(brick_of(row)); found != bytes.end())
        input.data_bytes = found->second;
    else
        input.data_bytes = row.bytes_per_call.value;
    if (!row.device)
        input.floor_ns = report.own_cost.floor_ns.value;
    if (row.time.count != 0) {
        input.launch_wait_share = static_cast<double>(row.launch_wait) / static_cast<double>(row.time.count);
        input.below_floor_share = static_cast<double>(row.below_floor) / static_cast<double>(row.time.count);
    }
    return input;
}

/// Bytes per step of the leaf bricks of one phase on one place; a parent's would be counted twice.
void add_speed_of_light(Report& report, PhaseSummary& phase) {
    struct Sum {
        double bytes = 0;
        std::uint64_t without = 0;
        bool any = false;
        const Row* row = nullptr;
    };
    std::map<std::string, Sum> places;
    for (const Row& row : report.bricks) {
        if (row.key.phase != phase.phase || row.parent)
            continue;
        Sum& sum = places[row.device ? row.source.substr(0, row.source.find('_')) : "host"];
        sum.row = &row;
        sum.any = sum.any || row.bytes_per_step.value;
        sum.bytes += row.bytes_per_step.value.value_or(0);
        sum.without += row.bytes_per_step.value ? 0 : 1;
    }
    for (const auto& [place, sum] : places) {
        if (!sum.any)
            continue;
        const Peaks* const peaks = peaks_of(report.peaks, sum.row->device, sum.row->source);
        SpeedOfLight light;
        light.place = place;
        light.bytes_per_step = stats::measured(sum.bytes);
        light.bricks_without_bytes = sum.without;
        light.ns_per_step = speed_of_light_ns(light.bytes_per_step, peaks);
        light.fits_cache = peaks != nullptr && peaks->last_level_cache_bytes.value &&
                           sum.bytes <= *peaks->last_level_cache_bytes.value;
        if (!light.ns_per_step.value)
            light.reached_percent = stats::absent(light.ns_per_step.reason);
        else if (!(phase.period.mean_ns > 0))
            light.reached_percent = stats::absent("no counted step of this phase");
        else
            light.reached_percent = stats::measured(100 * *light.ns_per_step.value / phase.period.mean_ns);
        phase.speed_of_light.push_back(std::move(light));
    }
}

} // namespace

void add_rooflines(Report& report) {
    const StepBytes bytes = bytes_of_bricks(report);
    for (auto* rows :
         {&report.bricks, &report.layers, &report.categories, &report.brick_layers, &report.graph_bricks}) {
        for (Row& row : *rows)
            row.roof = roofline(input_of(row, report, bytes), peaks_of(report.peaks, row.device, row.source));
    }
    for (PhaseSummary& phase : report.phases)
        add_speed_of_light(report, phase);
}

} // namespace plumb::analysis
