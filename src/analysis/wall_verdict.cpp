// SPDX-License-Identifier: Apache-2.0
#include "analysis/wall_verdict.hpp"

#include <algorithm>
#include <cstdio>

#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

constexpr double least_difference = 0.01; // of the period: less does not decide

double or_zero(const Figure& figure) { return figure.value.value_or(0); }

std::string us(double ns) {
    char text[48];
    std::snprintf(text, sizeof text, "%.1f us", ns / 1e3);
    return text;
}

std::string percent(double part, double whole) {
    char text[48];
    std::snprintf(text, sizeof text, "%.1f %%", whole > 0 ? 100 * part / whole : 0);
    return text;
}

/// The lane that the verdict is about: all devices, or the only one; the host where there is none.
const WallLane* decisive(const WallPhase& phase) {
    for (const WallLane& lane : phase.lanes) {
        if (lane.device) {
            return &lane;
        }
    }
    return phase.lanes.empty() ? nullptr : &phase.lanes.front();
}

void judge_host(WallPhase& phase, const WallLane& host) {
    phase.bound = WallBound::no_device;
    phase.reason = "Nothing ran on a device that was timed; at least one thread was on the CPU for " +
                   percent(or_zero(host.busy_ns), host.period_ns) + " of the time.";
}

void judge_unknown(WallPhase& phase, const WallLane& device) {
    phase.bound = WallBound::undecided;
    const Figure& unknown = device.idle.total.value ? device.host_waits_ns : device.idle.total;
    phase.reason = "Who waited for whom is not known: " + unknown.reason;
    if (phase.in_graph_busy_ns.value && phase.steps != 0) {
        const double period = phase.period_ns / static_cast<double>(phase.steps);
        phase.reason += "; replays held it for at most " + us(*phase.in_graph_busy_ns.value) + " per step (" +
                        percent(*phase.in_graph_busy_ns.value, period) + ")";
    }
    phase.reason += ".";
}

/// The host cannot have waited for the device longer than that was busy.
bool host_bound_anyway(const WallLane& device) {
    const double waits = or_zero(device.idle.exposed_launch) + or_zero(device.idle.host_work);
    return device.idle.total.value && device.busy_ns.value &&
           waits > *device.busy_ns.value + least_difference * device.period_ns;
}

void judge_host_bound(WallPhase& phase, const WallLane& device) {
    const auto steps = static_cast<double>(std::max<std::uint64_t>(device.steps, 1));
    const double waits = or_zero(device.idle.exposed_launch) + or_zero(device.idle.host_work);
    phase.bound = WallBound::host;
    phase.reason = "The device waited for the host for " + us(waits / steps) + " per step (" +
                   percent(waits, device.period_ns) + "), longer than it was busy.";
}

void judge_device(WallPhase& phase, const WallLane& device) {
    const auto steps = static_cast<double>(std::max<std::uint64_t>(device.steps, 1));
    const double waits = or_zero(device.idle.exposed_launch) + or_zero(device.idle.host_work);
    const double unknown = or_zero(device.idle.unknown) + or_zero(device.launch_wait_ns);
    const double host = or_zero(device.host_waits_ns);
    const double margin = least_difference * device.period_ns;
    const std::string device_waited = us(waits / steps) + " per step (" + percent(waits, device.period_ns) + ")";
    const std::string host_waited = us(host / steps) + " (" + percent(host, device.period_ns) + ")";
    if (waits > host + margin) {
        phase.bound = WallBound::host;
        phase.reason = "The device waited for the host for " + device_waited + ", the host for the device for " +
                       host_waited + ".";
    } else if (waits + unknown + margin < host) {
        phase.bound = WallBound::device;
        phase.reason = "The host waited for the device for " + us(host / steps) + " per step (" +
                       percent(host, device.period_ns) + "), the device for the host for " + us(waits / steps) + " (" +
                       percent(waits, device.period_ns) + ").";
    } else if (unknown > margin) {
        phase.bound = WallBound::undecided;
        phase.reason = "The device waited for the host for " + device_waited + ", the host for the device for " +
                       host_waited + ", and " + us(unknown / steps) + " (" + percent(unknown, device.period_ns) +
                       ") that are not known could tip it.";
    } else {
        phase.bound = WallBound::undecided;
        phase.reason = "Device and host waited for each other alike: " + device_waited + " and " + host_waited + ".";
    }
}

class Gains {
  public:
    Gains(WallPhase& phase, const WallLane& lane)
        : phase_(phase), steps_(static_cast<double>(std::max<std::uint64_t>(lane.steps, 1))),
          total_(or_zero(lane.idle.total)), uncertain_(lane.off_cpu_uncertain_ns),
          // Steps in which a queue is timed may take longer than those that count.
          period_(phase.steps == 0 ? lane.period_ns / steps_ : phase.period_ns / static_cast<double>(phase.steps)) {}

    void add(const std::string& what, double sum_ns) {
        if (!(sum_ns > 0)) {
            return;
        }
        WallGain gain;
        gain.what = what;
        gain.at_most_ns = sum_ns / steps_;
        gain.share = gain.at_most_ns / period_;
        const Figure& now = phase_.tokens_per_second;
        if (!now.value) {
            gain.tokens_per_second = now;
        } else if (gain.at_most_ns >= period_) {
            gain.tokens_per_second = stats::absent("no time would be left");
        } else {
            gain.tokens_per_second = stats::measured(*now.value * period_ / (period_ - gain.at_most_ns));
        }
        phase_.gains.push_back(std::move(gain));
    }
    /// A part of the idle time that depends on when threads were off the CPU.
    void add_by_place(const std::string& what, double sum_ns) {
        add(what, sum_ns > 0 ? std::min(total_, sum_ns + uncertain_) : 0);
    }

  private:
    WallPhase& phase_;
    double steps_, total_, uncertain_, period_;
};

void add_gains(WallPhase& phase, const WallLane& lane) {
    if (!lane.idle.total.value || !(lane.period_ns > 0)) {
        return;
    }
    Gains gains(phase, lane);
    if (!lane.device) {
        gains.add("some thread always on the CPU", or_zero(lane.idle.total));
        double outside = or_zero(lane.idle.total);
        for (const WallScope& scope : lane.idle.scopes) {
            gains.add_by_place("no waiting in " + scope.name, scope.self_ns);
            outside -= scope.self_ns;
        }
        gains.add_by_place("no waiting outside of named scopes", outside);
        return;
    }
    gains.add(lane.name + " never idle", or_zero(lane.idle.total));
    gains.add("no exposed launch", or_zero(lane.idle.exposed_launch));
    for (const WallScope& scope : lane.idle.scopes) {
        gains.add_by_place("no host work in " + scope.name, scope.self_ns);
    }
    gains.add_by_place(gain_of_unknown_cause, or_zero(lane.idle.unknown));
}

} // namespace

void judge(WallPhase& phase) {
    const WallLane* lane = decisive(phase);
    if (lane == nullptr) {
        return;
    }
    phase.gains.clear();
    if (!lane->device) {
        judge_host(phase, *lane);
    } else if (!lane->host_waits_ns.value && host_bound_anyway(*lane)) {
        judge_host_bound(phase, *lane);
    } else if (!lane->idle.total.value || !lane->host_waits_ns.value) {
        judge_unknown(phase, *lane);
    } else {
        judge_device(phase, *lane);
    }
    add_gains(phase, *lane);
}

} // namespace plumb::analysis
