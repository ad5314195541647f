// SPDX-License-Identifier: Apache-2.0
// Bricks that are further from their roofline than the others.
#include <algorithm>

#include "answers/findings/detect.hpp"

namespace plumb::findings {
namespace {

/// Of that brick, per step: an odd layer explains it.
double odd_ns(const FoundInPhase& found, const std::string& brick) {
    double ns = 0;
    for (const Finding& other : found.findings) {
        ns += other.kind == FindingKind::odd_layer && other.subject == brick ? other.likely_ns : 0;
    }
    return ns;
}

/// A brick that its roofline is a measure for: no cache and no launch explains its time.
struct HeldBrick {
    const Row* row = nullptr;
    bool memory = false;  // the side of its roofline
    double ideal_ns = 0;  // per step, at its roofline
    double explained = 0; // per step, by other findings
    double time_ns = 0;   // per step, in which any call of it runs
    double left_ns = 0;   // the rest of it
    [[nodiscard]] double share() const { return ideal_ns / left_ns; }
};

std::vector<HeldBrick> held_bricks(const FoundInPhase& found, std::string& reason) {
    std::vector<HeldBrick> held;
    for (const Row& row : found.run.report.bricks) {
        if (row.key.phase != found.phase || row.parent || row.lap || row.basis_steps == 0) {
            continue;
        }
        const Roofline& roof = row.roof;
        const bool explained =
            roof.fits_cache || roof.bottleneck == Bottleneck::latency || roof.bottleneck == Bottleneck::cache;
        if (!roof.share.value || explained) {
            const bool worked = row.bytes_per_step.value || row.flops_per_call.value;
            reason = !worked     ? reason
                     : explained ? "its bricks are held back by caches or launches"
                                 : roof.share.reason;
            continue;
        }
        HeldBrick one;
        one.row = &row;
        one.memory = roof.memory_share.value.value_or(0) >= roof.compute_share.value.value_or(0);
        one.time_ns = row.sum_per_step_ns / calls_at_once(row);
        one.ideal_ns = *roof.share.value * one.time_ns;
        one.explained = odd_ns(found, row.key.name) + off_cpu_ns(found, row.key.name, row.device);
        one.left_ns = one.time_ns - one.explained;
        if (one.left_ns > one.ideal_ns && one.ideal_ns > 0) {
            held.push_back(one);
        }
    }
    return held;
}

/// The share that half of the other bricks' time reaches. Absent: there are not two others on that side of the roofline.
std::optional<double> level_of_others(const std::vector<HeldBrick>& all, const HeldBrick& one) {
    std::vector<std::pair<double, double>> others; // share, time
    double time = 0;
    for (const HeldBrick& other : all) {
        if (other.row != one.row && other.row->device == one.row->device && other.memory == one.memory) {
            others.emplace_back(other.share(), other.left_ns);
            time += other.left_ns;
        }
    }
    std::sort(others.begin(), others.end());
    double below = 0;
    for (const auto& [share, ns] : others) {
        below += ns;
        if (others.size() >= 2 && 2 * below >= time) {
            return share;
        }
    }
    return std::nullopt;
}

constexpr double alone_reach = 0.5; // of the roofline: nothing is said of a brick above it that has no others beside it
constexpr double far_below = 0.88;  // of what the others reach

void judge_slow_brick(FoundInPhase& found, const std::vector<HeldBrick>& all, const HeldBrick& one) {
    const std::optional<double> others = level_of_others(all, one);
    const double level = others.value_or(alone_reach);
    if (!(one.share() < far_below * level)) {
        return;
    }
    const std::string& name = one.row->key.name;
    Finding finding;
    finding.kind = FindingKind::far_from_roofline;
    finding.subject = name;
    finding.likely_ns = (one.left_ns - one.ideal_ns / level) * share_of_path(found, name);
    finding.at_most_ns = one.time_ns - one.ideal_ns;
    finding.claim = name + " reaches " + percent(one.share()) + " of its roofline (" +
                    (one.memory ? "bandwidth" : "arithmetic") + "), " +
                    (others ? "the other bricks " + percent(level) + "." : "less than half.");
    finding.evidence.push_back(
        {"plumb report", name + ", share of its roofline", {100 * *one.row->roof.share.value, {}}, "%"});
    if (others) {
        finding.evidence.push_back({"plumb report", "the other bricks, by half of their time", {100 * level, {}}, "%"});
    }
    finding.evidence.push_back(us_per_step("plumb report", name + ", sum", one.row->sum_per_step_ns));
    if (calls_at_once(*one.row) > side_by_side) {
        finding.evidence.push_back({"plumb report", name + ", calls at once", one.row->calls_at_once, ""});
    }
    if (one.explained > 0) {
        finding.evidence.push_back(us_per_step("plumb wall", "of that, in an odd layer or off the CPU", one.explained));
    }
    finding.refuted_by = "bytes or flops of " + name +
                         " that are stated wrong, or peaks that a new `plumb selftest --peaks` does not confirm";
    found.add(std::move(finding), Sureness::likely,
              others ? "its bytes and flops are as the engine states them, and the other bricks may be better suited"
                     : "its bytes and flops are as the engine states them",
              one.row->basis_steps);
}

} // namespace

void find_slow_bricks(FoundInPhase& found) {
    std::string reason = "no brick of it states bytes or flops";
    const std::vector<HeldBrick> held = held_bricks(found, reason);
    if (held.empty()) {
        found.cannot(FindingKind::far_from_roofline, reason);
        return;
    }
    for (const HeldBrick& one : held) {
        judge_slow_brick(found, held, one);
    }
}

} // namespace plumb::findings
