// SPDX-License-Identifier: Apache-2.0
// Who waited for whom: from the account of the wall clock.
#include <algorithm>

#include "answers/findings/detect.hpp"

namespace plumb::findings {
namespace {

double or_zero(const Figure& figure) { return figure.value.value_or(0); }

/// All devices, or the only one; null where there is none.
const WallLane* device_of(const WallPhase& wall) {
    const auto found =
        std::find_if(wall.lanes.begin(), wall.lanes.end(), [](const WallLane& lane) { return lane.device; });
    return found == wall.lanes.end() ? nullptr : &*found;
}

/// Rows for the scopes that hold most of the idle time of a lane.
void add_scopes(Finding& finding, const WallLane& lane, const std::string& before) {
    constexpr std::size_t most = 3;
    const auto steps = static_cast<double>(lane.steps);
    for (std::size_t i = 0; i < std::min(most, lane.idle.scopes.size()); ++i) {
        const WallScope& scope = lane.idle.scopes[i];
        if (scope.self_ns > 0) {
            finding.evidence.push_back(us_per_step("plumb wall", before + scope.name, scope.self_ns / steps));
        }
    }
}

void find_host_bound(FoundInPhase& found, const WallLane& device) {
    const auto steps = static_cast<double>(device.steps);
    const double named = or_zero(device.idle.host_work) / steps, unnamed = or_zero(device.idle.unnamed) / steps;
    Finding finding;
    finding.kind = FindingKind::host_bound;
    finding.at_most_ns = finding.likely_ns = named + unnamed;
    const bool in_scope = named >= unnamed && !device.idle.scopes.empty();
    finding.subject = in_scope ? device.idle.scopes.front().name : "";
    const std::string where = in_scope ? "most of it in " + finding.subject : "most of it in no named scope";
    finding.claim = device.name + " waits " + us(finding.likely_ns) + " per step while the host works, " + where +
                    ": nothing was launched meanwhile.";
    add_scopes(finding, device, device.name + " idle, host at work in ");
    finding.evidence.push_back(us_per_step("plumb wall", device.name + " idle, host in no named scope", unnamed));
    finding.refuted_by = "a run that skips " + (in_scope ? finding.subject : std::string("this work")) +
                         ", or does it on another thread, and whose step is as long";
    found.add(std::move(finding), Sureness::sure, "the idle time of " + device.name + " was measured", device.steps);
}

void find_launch_gaps(FoundInPhase& found, const WallLane& device) {
    const auto steps = static_cast<double>(device.steps);
    Finding finding;
    finding.kind = FindingKind::launch_gaps;
    finding.subject = device.name;
    finding.likely_ns = or_zero(device.idle.exposed_launch) / steps;
    finding.at_most_ns = finding.likely_ns + or_zero(device.idle.queued) / steps;
    finding.claim =
        device.name + " waits " + us(finding.likely_ns) + " per step for commands that are still being launched.";
    finding.evidence.push_back(us_per_step("plumb wall", device.name + " idle, exposed launch", finding.likely_ns));
    finding.evidence.push_back(
        us_per_step("plumb wall", device.name + " idle, launched and not begun", or_zero(device.idle.queued) / steps));
    if (found.run.path.ok() && found.run.path->phase == found.phase) {
        finding.evidence.push_back({"plumb path",
                                    "launches of the host in step " + std::to_string(found.run.path->step),
                                    {static_cast<double>(found.run.path->host_launches), {}},
                                    "launches"});
    }
    finding.refuted_by = "a captured graph of the step, or fewer and longer kernels, with which the step is as long";
    found.add(std::move(finding), Sureness::sure, "the idle time of " + device.name + " was measured", device.steps);
}

void find_off_cpu(FoundInPhase& found, const WallLane& lane) {
    const auto steps = static_cast<double>(lane.steps);
    Finding finding;
    finding.kind = FindingKind::off_cpu;
    finding.likely_ns = finding.at_most_ns = or_zero(lane.device ? lane.idle.off_cpu : lane.idle.total) / steps;
    const std::string whose = lane.device ? lane.name + " idle, host off the CPU" : "no thread on the CPU";
    finding.claim = "For " + us(finding.likely_ns) + " per step no thread of the host is on the CPU" +
                    (lane.device ? ", and " + lane.name + " has nothing to do." : ".");
    finding.evidence.push_back(us_per_step("plumb wall", whose, finding.likely_ns));
    if (!lane.device) {
        finding.subject = lane.idle.scopes.empty() ? "" : lane.idle.scopes.front().name;
        add_scopes(finding, lane, "off the CPU in ");
    }
    finding.refuted_by =
        "a run on a machine with nothing else to do, its threads bound to cores, that is off the CPU as long";
    found.add(std::move(finding), Sureness::sure, "CPU time was read before and after each stall", lane.steps);
}

} // namespace

void find_waits(FoundInPhase& found) {
    const WallLane* device = device_of(found.wall);
    if (device == nullptr) {
        if (!found.wall.lanes.empty() && found.wall.lanes.front().steps != 0) {
            find_off_cpu(found, found.wall.lanes.front());
        }
        return;
    }
    if (!device->idle.total.value || device->steps == 0) {
        for (const FindingKind kind : {FindingKind::host_bound, FindingKind::launch_gaps, FindingKind::off_cpu}) {
            found.cannot(kind, "when " + device->name + " was idle is not known: " + device->idle.total.reason);
        }
        return;
    }
    find_host_bound(found, *device);
    find_launch_gaps(found, *device);
    find_off_cpu(found, *device);
}

} // namespace plumb::findings
