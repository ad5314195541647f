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

/// The scope that holds half or more of that time; empty: none does.
std::string main_scope(const WallLane& lane, double ns_per_step) {
    const std::vector<WallScope>& scopes = lane.idle.scopes;
    return !scopes.empty() && 2 * scopes.front().self_ns >= ns_per_step * static_cast<double>(lane.steps)
               ? scopes.front().name
               : "";
}

void find_host_bound(FoundInPhase& found, const WallLane& device) {
    const auto steps = static_cast<double>(device.steps);
    const double named = or_zero(device.idle.host_work) / steps, unnamed = or_zero(device.idle.unnamed) / steps;
    Finding finding;
    finding.kind = FindingKind::host_bound;
    finding.at_most_ns = finding.likely_ns = named + unnamed;
    finding.subject = main_scope(device, finding.likely_ns);
    const bool in_scope = !finding.subject.empty();
    const std::string where = in_scope          ? "most of it in " + finding.subject
                              : unnamed > named ? "most of it in no named scope"
                                                : "in several scopes";
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

/// Of what the samples saw, per step.
double per_step(const FoundInPhase& found, double ns) {
    const double covered = found.wall.off_cpu ? found.wall.off_cpu->covered_ns : 0;
    return covered > 0 ? ns / covered * found.period_ns() : 0;
}

/// A thread that does some of the work: it would be missed while it waits for its turn.
bool works(const OffCpuThread& thread) { return thread.on_cpu_ns > 0.2 * thread.observed_ns; }

/// The one that waits longest for a CPU; null: none, or it is not known.
const OffCpuThread* longest_in_queue(const FoundInPhase& found) {
    const OffCpuThread* longest = nullptr;
    if (found.wall.off_cpu) {
        for (const OffCpuThread& thread : found.wall.off_cpu->threads) {
            if (works(thread) && (longest == nullptr || thread.run_queue_ns > longest->run_queue_ns)) {
                longest = &thread;
            }
        }
    }
    return longest;
}

/// What all of them wait, per step: they may do so by turns.
double queued_at_most(const FoundInPhase& found) {
    double sum = 0;
    for (const OffCpuThread& thread : found.wall.off_cpu->threads) {
        sum += works(thread) ? thread.run_queue_ns : 0;
    }
    return per_step(found, sum);
}

/// Why threads were off the CPU, as the kernel counts it.
void add_causes(const FoundInPhase& found, Finding& finding) {
    constexpr std::size_t most = 3;
    if (!found.wall.off_cpu) {
        return;
    }
    const OffCpuCauses& causes = *found.wall.off_cpu;
    if (!causes.run_queue_ns.value) {
        finding.evidence.push_back({"plumb wall", "waiting for a CPU, or blocked", causes.run_queue_ns, ""});
        return;
    }
    for (std::size_t i = 0; i < std::min(most, causes.threads.size()); ++i) {
        const OffCpuThread& thread = causes.threads[i];
        finding.evidence.push_back(
            us_per_step("plumb wall", thread.name + ", in the run queue", per_step(found, thread.run_queue_ns)));
        finding.evidence.push_back(
            us_per_step("plumb wall", thread.name + ", blocked", per_step(found, thread.blocked_ns)));
    }
    finding.evidence.push_back(
        {"plumb wall", "involuntary switches of the process, estimated", causes.involuntary_switches, ""});
    finding.evidence.push_back({"plumb wall", "major page faults of the process, estimated", causes.major_faults, ""});
}

void find_off_cpu(FoundInPhase& found, const WallLane& lane) {
    const auto steps = static_cast<double>(lane.steps);
    Finding finding;
    finding.kind = FindingKind::off_cpu;
    const double idle = or_zero(lane.device ? lane.idle.off_cpu : lane.idle.total) / steps;
    const OffCpuThread* const waiting = lane.device ? nullptr : longest_in_queue(found);
    // A sample may hold steps of others: more than all threads were off the CPU in these steps, it cannot have been.
    const double off = (static_cast<double>(lane.tracks) * lane.period_ns - or_zero(lane.busy_sum_ns)) / steps;
    const double queued = waiting == nullptr ? 0 : std::min(off, per_step(found, waiting->run_queue_ns));
    finding.likely_ns = finding.at_most_ns = std::max(idle, queued);
    const bool for_a_cpu = queued > idle / 2;
    if (for_a_cpu) {
        finding.at_most_ns = std::max(idle, std::min(off, queued_at_most(found)));
        finding.claim = waiting->name + " waits " + us(queued) + " per step for a CPU that others have" +
                        (idle > 0 ? "; for " + us(idle) + " no thread of the host is on one." : ".");
    } else {
        finding.claim = "For " + us(idle) + " per step no thread of the host is on the CPU" +
                        (lane.device ? ", and " + lane.name + " has nothing to do." : ".");
    }
    const std::string whose = lane.device ? lane.name + " idle, host off the CPU" : "no thread on the CPU";
    finding.evidence.push_back(us_per_step("plumb wall", whose, idle));
    constexpr double little = 0.1;
    const WallLane& host = found.wall.lanes.front();
    const double uncertain = uncertain_share(host);
    if (!lane.device && uncertain <= little) {
        finding.subject = main_scope(lane, finding.likely_ns);
        add_scopes(finding, lane, "off the CPU in ");
    } else if (uncertain > little) {
        finding.evidence.push_back(
            us_per_step("plumb wall", "off the CPU, when is not known",
                        host.off_cpu_uncertain_ns / static_cast<double>(std::max<std::uint64_t>(host.steps, 1))));
    }
    add_causes(found, finding);
    finding.refuted_by =
        "a run on a machine with nothing else to do, its threads bound to cores, that is off the CPU as long";
    const double sampled = for_a_cpu ? found.wall.off_cpu->covered_ns / found.wall.period_ns : 1;
    if (queued > idle || sampled < 0.9) {
        found.add(std::move(finding), sampled < 0.9 ? Sureness::likely : Sureness::sure,
                  "the kernel counts for how long a thread waits for a CPU" +
                      (sampled < 0.9 ? ", in " + percent(sampled) + " of the time of these steps" : ""),
                  lane.steps);
    } else if (uncertain <= little) {
        found.add(std::move(finding), Sureness::sure, "CPU time was read before and after each stall", lane.steps);
    } else if (!lane.device && lane.tracks == 1) {
        found.add(std::move(finding), Sureness::sure,
                  "CPU time of the thread says for how long, but was read too rarely to say in which scopes",
                  lane.steps);
    } else {
        found.add(std::move(finding), Sureness::likely,
                  "CPU time of threads was read too rarely to say when each was off", lane.steps);
    }
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

void find_steal(FoundInPhase& found) {
    if (!found.wall.off_cpu || !found.wall.off_cpu->stolen_ns.value) {
        found.cannot(FindingKind::steal, found.wall.off_cpu ? found.wall.off_cpu->stolen_ns.reason : "");
        return;
    }
    const OffCpuCauses& causes = *found.wall.off_cpu;
    const auto working = std::count_if(causes.threads.begin(), causes.threads.end(), works);
    Finding finding;
    finding.kind = FindingKind::steal;
    finding.at_most_ns = per_step(found, *causes.stolen_ns.value);
    finding.likely_ns = finding.at_most_ns / static_cast<double>(std::max<std::ptrdiff_t>(working, 1));
    finding.claim = "The hypervisor runs others for " + us(finding.at_most_ns) +
                    " per step, over all CPUs, though this machine has work.";
    finding.evidence.push_back(us_per_step("plumb wall", "stolen from all CPUs of the machine", finding.at_most_ns));
    finding.evidence.push_back({"plumb wall", "threads that work", {static_cast<double>(working), {}}, ""});
    finding.refuted_by = "a run on a machine with CPUs of its own whose step is as long";
    found.add(std::move(finding), Sureness::likely, "which process the time was stolen from is not known",
              found.wall.steps);
}

} // namespace plumb::findings
