// SPDX-License-Identifier: Apache-2.0
// What all kinds of finding share: the time they are held against, and how sure one can be.
#include <algorithm>
#include <cmath>

#include "answers/findings/detect.hpp"

namespace plumb::findings {
namespace {

constexpr double lossy = 0.01; // of the scopes

Sureness lower(Sureness sure) { return sure == Sureness::sure ? Sureness::likely : Sureness::possible; }

} // namespace

std::string us(double ns) { return page::fixed(ns / 1e3, 1) + " us"; }
std::string percent(double share) { return page::fixed(100 * share, 1) + " %"; }

EvidenceRow us_per_step(const char* command, std::string what, double ns) {
    return {command, std::move(what), {ns / 1e3, {}}, "us per step"};
}

double error_of(const Row& row) {
    return row.time.count != 0 ? 3 * std::sqrt(row.time.variance_ns2 / static_cast<double>(row.time.count)) : 0;
}

double calls_at_once(const Row& row) { return std::max(1.0, row.calls_at_once.value.value_or(1)); }

double share_of_path(const FoundInPhase& found, const std::string& brick) {
    if (!found.run.path.ok() || found.run.path->phase != found.phase) {
        return 1;
    }
    for (const PathRow& row : found.run.path->rows) {
        if (row.name == brick && row.gain_ns.value && row.total_ns > 0) {
            return std::clamp(*row.gain_ns.value / row.total_ns, 0.0, 1.0);
        }
    }
    return 1;
}

double uncertain_share(const WallLane& host) {
    const double off = static_cast<double>(host.tracks) * host.period_ns - host.busy_sum_ns.value.value_or(0);
    return off > 0 ? std::min(1.0, host.off_cpu_uncertain_ns / off) : 0;
}

double off_cpu_ns(const FoundInPhase& found, const std::string& brick, bool device) {
    double ns = 0;
    const WallLane* host = found.wall.lanes.empty() ? nullptr : &found.wall.lanes.front();
    if (!device && host != nullptr && host->steps != 0) {
        for (const WallScope& scope : host->idle.scopes) {
            ns += scope.name == brick ? scope.self_ns / static_cast<double>(host->steps) : 0;
        }
        ns *= 1 - uncertain_share(*host);
    }
    return ns;
}

FoundInPhase::FoundInPhase(const RunAnswers& answers, const WallPhase& account)
    : run(answers), wall(account), phase(account.phase) {
    double periods = 0;
    std::uint64_t counted = 0;
    for (const StepWatch::Step& step : run.steps) {
        all_ns_ += step.period_ns;
        if (step.phase == phase) {
            steps_of_phase_ += 1;
            phase_ns_ += step.period_ns;
            periods += step.counted ? step.period_ns : 0;
            counted += step.counted ? 1 : 0;
        }
    }
    period_ns_ = counted != 0 ? periods / static_cast<double>(counted) : 0;
    double lost = 0;
    for (const LossRow& loss : run.report.losses) {
        lost += static_cast<double>(loss.count);
    }
    lost_share_ = lost > 0 ? lost / (lost + static_cast<double>(run.report.scopes)) : 0;
}

void FoundInPhase::add(Finding finding, Sureness at_best, std::string because, std::uint64_t of_steps,
                       std::uint64_t enough) {
    if (!(period_ns_ > 0) || !(all_ns_ > 0)) {
        return;
    }
    // What warm-up loses is of all steps: the counted ones are those without it.
    const double period = finding.kind == FindingKind::slow_warm_up ? phase_ns_ / steps_of_phase_ : period_ns_;
    finding.phase = phase;
    finding.at_most_ns = std::min(finding.at_most_ns, period);
    finding.likely_ns = std::min(finding.likely_ns, finding.at_most_ns);
    finding.share = finding.at_most_ns / period;
    finding.weight = finding.likely_ns * steps_of_phase_ / all_ns_;
    if (finding.likely_ns < least_finding * period || finding.weight < least_finding) {
        return;
    }
    finding.sure = at_best;
    finding.because = std::move(because);
    if (of_steps < enough) {
        finding.sure = 3 * of_steps < enough ? Sureness::possible : lower(finding.sure);
        finding.because += "; only " + std::to_string(of_steps) + (of_steps == 1 ? " step tells" : " steps tell");
    }
    if (lost_share_ > lossy) {
        finding.sure = lower(finding.sure);
        finding.because += "; " + percent(lost_share_) + " of the records are lost";
    }
    findings.push_back(std::move(finding));
}

} // namespace plumb::findings
