// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_roofline.hpp"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <tuple>
#include <utility>

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
        if (row.bytes_per_step.value) {
            bytes[brick_of(row)] += *row.bytes_per_step.value;
        }
    }
    return bytes;
}

/// So many calls share the peaks of the place of a row.
double calls_together(const Row& row) {
    const bool one_place = !row.device || !row.place.empty(); // several devices have peaks of their own
    return one_place ? row.calls_at_once.value.value_or(1) : 1;
}

/// Rates are of the calls that gave their work; so are bytes and flops here, of as many calls as run at once.
RoofInput input_of(const Row& row, const Report& report, const StepBytes& bytes, bool f32_only) {
    RoofInput input;
    input.f32_only = f32_only;
    input.duration_ns = row.time.mean_ns;
    if (row.gigabytes_per_second.value) {
        input.bytes = *row.gigabytes_per_second.value * input.duration_ns * calls_together(row);
    }
    if (row.teraflops.value) {
        input.flops = *row.teraflops.value * 1000 * input.duration_ns * calls_together(row);
    }
    if (const auto found = bytes.find(brick_of(row)); found != bytes.end()) {
        input.data_bytes = found->second;
    } else {
        input.data_bytes = row.bytes_per_call.value;
    }
    if (!row.device) {
        input.floor_ns = report.own_cost.floor_ns.value;
    }
    if (row.time.count != 0) {
        input.launch_wait_share = static_cast<double>(row.launch_wait) / static_cast<double>(row.time.count);
        input.below_floor_share = static_cast<double>(row.below_floor) / static_cast<double>(row.time.count);
    }
    return input;
}

/// Beyond this share of the read bandwidth it is rather the kept peak that is wrong.
constexpr double believable_share = 1.05;
/// So many times the caches must a brick's bytes be, that what still lies there does not matter.
constexpr double caches_exceeded = 4;

/// "2026-11-21", as the world counts days.
std::string day_of(std::int64_t unix_s) {
    const auto time = static_cast<std::time_t>(unix_s);
    std::tm parts{};
    char text[16] = "";
    if (unix_s <= 0 || gmtime_r(&time, &parts) == nullptr || std::strftime(text, sizeof text, "%F", &parts) == 0) {
        return {};
    }
    return text;
}

/// A leaf that moves more than memory gave when its peak was kept: the worst one of a phase is told.
void note_outdated_peaks(Report& report, Phase phase, const StepBytes& bytes) {
    const Row* worst = nullptr;
    for (const Row& row : report.bricks) {
        const std::optional<double>& share = row.roof.memory_share.value;
        // Spans cut short by their neighbours are shorter than their work took.
        if (row.key.phase != phase || row.parent || row.cut_by_neighbour != 0 || !share || *share <= believable_share) {
            continue;
        }
        const Peaks* const peaks = peaks_of(report.peaks, row.device, row.source, row.place).peaks;
        const auto data = bytes.find(brick_of(row));
        const std::optional<double>& cache = peaks->last_level_cache_bytes.value;
        if (data == bytes.end() || (cache && data->second <= caches_exceeded * *cache)) {
            continue;
        }
        worst = worst == nullptr || *share > *worst->roof.memory_share.value ? &row : worst;
    }
    if (worst == nullptr) {
        return;
    }
    const std::string day =
        day_of(peaks_of(report.peaks, worst->device, worst->source, worst->place).peaks->measured_unix_s);
    char percent[32];
    std::snprintf(percent, sizeof percent, "%.0f", 100 * *worst->roof.memory_share.value);
    report.notes.push_back(worst->key.name + " moves " + percent + " % of the read bandwidth kept" +
                           (day.empty() ? "" : " on " + day) +
                           ": measure again with `plumb selftest --peaks` on a quiet machine.");
}

/// Their rates are of one call, and what is held against the peaks is not.
void note_calls_at_once(Report& report, Phase phase) {
    constexpr double noticed = 1.1;
    constexpr std::size_t most = 3;
    std::string names;
    std::size_t bricks = 0;
    for (const Row& row : report.bricks) {
        if (row.key.phase != phase || !row.roof.share.value || calls_together(row) < noticed || bricks == most) {
            continue;
        }
        char times[32];
        std::snprintf(times, sizeof times, "%.1f", calls_together(row));
        names += (bricks++ == 0 ? "" : ", ") + row.key.name + " (" + times + ")";
    }
    if (bricks != 0) {
        report.notes.push_back(std::string(phase_word(phase)) + ": calls run side by side, so many at once: " + names +
                               ". Their % roof and gap are of all that run together, GB/s and TFLOP/s of one.");
    }
}

constexpr const char* in_cache = "the bytes fit the last-level cache: memory sets no limit to be held against";
constexpr const char* on_the_host = "kernels of the host are not launched: all of the gap is theirs";
constexpr const char* gaps_inside = "spans hold the gaps between their kernels: only kernel records could tell";

/// What the host leaves of a step to its device, from the first kernel to the last, per step; and all of the step.
struct DeviceStretch {
    Figure of_device, of_step;
};

DeviceStretch stretch_of(const PhaseSummary& phase) {
    const DeviceAccount& device = *phase.device;
    if (device.stretch_per_step_ns.value && device.idle_per_step_ns.value) {
        return {device.stretch_per_step_ns,
                stats::measured(*device.busy_per_step_ns.value + *device.idle_per_step_ns.value)};
    }
    const bool graphs_alone = !device.busy_per_step_ns.value && device.in_graph_busy_per_step_ns.value;
    return {graphs_alone ? device.in_graph_busy_per_step_ns : stats::absent(device.stretch_per_step_ns.reason),
            stats::measured(phase.period.mean_ns)};
}

/// By the stamps of the kernels themselves, in whatever they were launched.
void add_gap_of_stamps(const PhaseSummary& phase, SpeedOfLight& light) {
    const double kernels = *phase.kernels_per_step_ns.value, stretch = *phase.kernel_stretch_per_step_ns.value;
    light.kernel_times = "kernel stamps";
    light.kernel_excess_ns = stats::measured(kernels - *light.ns_per_step.value);
    light.between_kernels_ns = stats::measured(stretch - kernels);
    light.device_excess_ns = stats::measured(stretch - *light.ns_per_step.value);
    light.host_ns = stats::measured(phase.period.mean_ns - stretch);
}

/// Means of some steps cannot be held against those of all.
std::string stamps_missing(const PhaseSummary& phase) {
    return "only " + std::to_string(phase.stamped_steps) + " of " + std::to_string(phase.steps) +
           " counted steps have kernel stamps";
}

/// Of the only device of a phase, whose light is known. `gaps_between`: durations are of kernels alone.
void add_gap_of_device(const PhaseSummary& phase, bool gaps_between, SpeedOfLight& light) {
    const DeviceStretch stretch = stretch_of(phase);
    const bool some_stamps = phase.stamped_steps != 0;
    if (!stretch.of_device.value) {
        light.kernel_excess_ns = light.between_kernels_ns = light.device_excess_ns = light.host_ns =
            stats::absent(some_stamps ? stamps_missing(phase) : stretch.of_device.reason);
        return;
    }
    light.host_ns = stats::measured(*stretch.of_step.value - *stretch.of_device.value);
    light.device_excess_ns = stats::measured(*stretch.of_device.value - *light.ns_per_step.value);
    light.kernel_excess_ns = light.between_kernels_ns =
        stats::absent(some_stamps ? stamps_missing(phase) : gaps_inside);
    if (gaps_between && phase.device->busy_per_step_ns.value) {
        const double kernels = *phase.device->busy_per_step_ns.value;
        light.kernel_times = "trace";
        light.kernel_excess_ns = stats::measured(kernels - *light.ns_per_step.value);
        light.between_kernels_ns = stats::measured(*stretch.of_device.value - kernels);
    }
}

void add_gaps(const Report& report, PhaseSummary& phase) {
    const bool gaps_between =
        std::find(report.description.begin(), report.description.end(),
                  std::pair<std::string, std::string>("gaps", "between operations")) != report.description.end();
    const auto devices = std::count_if(phase.speed_of_light.begin(), phase.speed_of_light.end(),
                                       [](const SpeedOfLight& light) { return light.place != "host"; });
    for (SpeedOfLight& light : phase.speed_of_light) {
        const bool of_host = light.place == "host";
        light.between_kernels_ns = light.host_ns = stats::absent(on_the_host);
        if (!light.reached_share.value) {
            light.kernel_excess_ns = light.device_excess_ns = stats::absent(light.reached_share.reason);
        } else if (light.fits_cache) {
            light.kernel_excess_ns = light.device_excess_ns = stats::absent(in_cache);
        } else if (devices > 1 || (of_host && phase.device)) {
            light.kernel_excess_ns = light.device_excess_ns =
                stats::absent("bricks of several places share these steps");
        } else if (of_host) {
            light.kernel_excess_ns = light.device_excess_ns =
                stats::measured(phase.period.mean_ns - *light.ns_per_step.value);
            continue;
        } else if (phase.stamped_steps != 0 && phase.stamped_steps == phase.steps) {
            add_gap_of_stamps(phase, light);
            continue;
        } else {
            add_gap_of_device(phase, gaps_between, light);
            continue;
        }
        light.between_kernels_ns = light.host_ns = light.kernel_excess_ns;
    }
}

/// Bytes per step of the leaf bricks of one phase on one place; a parent's would be counted twice.
void add_speed_of_light(Report& report, PhaseSummary& phase, const DevicesOfBackends& devices) {
    struct Sum {
        double bytes = 0;
        std::uint64_t without = 0;
        bool any = false;
        const Row* row = nullptr;
        std::string device; // empty: not known, or several
    };
    std::map<std::string, Sum> places;
    for (const Row& row : report.bricks) {
        if (row.key.phase != phase.phase || row.parent) {
            continue;
        }
        Sum& sum = places[row.device ? backend_of(row.source) : "host"];
        sum.device = sum.row == nullptr || sum.device == row.place ? row.place : std::string();
        sum.row = &row;
        sum.any = sum.any || row.bytes_per_step.value;
        sum.bytes += row.bytes_per_step.value.value_or(0);
        sum.without += row.bytes_per_step.value ? 0 : 1;
    }
    for (const auto& [place, sum] : places) {
        if (!sum.any) {
            continue;
        }
        const PeaksOfPlace against = peaks_of(report.peaks, sum.row->device, sum.row->source, sum.device);
        SpeedOfLight light;
        light.place = place;
        if (const auto seen = devices.find(place); sum.row->device && sum.device.empty() && seen != devices.end()) {
            light.devices = seen->second.size();
        }
        // At best each reads an equal part, all at the same time.
        const double of_one = sum.bytes / static_cast<double>(light.devices);
        light.bytes_per_step = stats::measured(sum.bytes);
        light.bricks_without_bytes = sum.without;
        light.ns_per_step = speed_of_light_ns(stats::measured(of_one), against);
        light.fits_cache = against.peaks != nullptr && against.peaks->last_level_cache_bytes.value &&
                           of_one <= *against.peaks->last_level_cache_bytes.value;
        if (!light.ns_per_step.value) {
            light.reached_share = stats::absent(light.ns_per_step.reason);
        } else if (!(phase.period.mean_ns > 0)) {
            light.reached_share = stats::absent("no counted step of this phase");
        } else {
            light.reached_share = stats::measured(*light.ns_per_step.value / phase.period.mean_ns);
        }
        phase.speed_of_light.push_back(std::move(light));
    }
    add_gaps(report, phase);
}

Figure excess_of(const Row& row, const PeaksOfPlace& against) {
    if (row.roof.fits_cache) {
        return stats::absent(in_cache);
    }
    const Figure light = speed_of_light_ns(row.bytes_per_step, against);
    return light.value ? stats::measured(row.sum_per_step_ns / calls_together(row) - *light.value) : light;
}

} // namespace

std::string backend_of(const std::string& source) { return source.substr(0, source.find('_')); }

void add_rooflines(Report& report, bool damaged, const DevicesOfBackends& devices) {
    const StepBytes bytes = bytes_of_bricks(report);
    const bool f32_only = is_f32_model(report.description);
    for (auto* rows :
         {&report.bricks, &report.layers, &report.categories, &report.brick_layers, &report.graph_bricks}) {
        for (Row& row : *rows) {
            const PeaksOfPlace against = peaks_of(report.peaks, row.device, row.source, row.place);
            RoofInput input = input_of(row, report, bytes, f32_only);
            input.damaged = damaged;
            row.roof = roofline(input, against);
            row.excess_per_step_ns = excess_of(row, against);
        }
    }
    for (PhaseSummary& phase : report.phases) {
        add_speed_of_light(report, phase, devices);
    }
}

void add_peak_notes(Report& report) {
    const StepBytes bytes = bytes_of_bricks(report);
    for (const PhaseSummary& phase : report.phases) {
        note_outdated_peaks(report, phase.phase, bytes);
        note_calls_at_once(report, phase.phase);
    }
}

} // namespace plumb::analysis
