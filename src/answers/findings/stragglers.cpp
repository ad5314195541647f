// SPDX-License-Identifier: Apache-2.0
// What a late rank costs the others, as `plumb ranks` tells it.
#include <algorithm>

#include "answers/findings/detect.hpp"

namespace plumb::findings {
namespace {

constexpr std::uint64_t many_collectives = 30;

std::string count(double value) { return page::fixed(value, 0); }

} // namespace

std::vector<Finding> find_stragglers(const RanksReport& ranks) {
    std::vector<Finding> found;
    const double steps = ranks.steps != 0 ? static_cast<double>(ranks.steps) : 1;
    for (const LateRank& late : ranks.late) {
        const std::string rank = "rank " + std::to_string(late.rank);
        Finding finding;
        finding.kind = FindingKind::straggler;
        finding.subject = rank;
        finding.at_most_ns = late.cost.most_ns / steps;
        finding.likely_ns = late.cost.least_ns / steps;
        finding.share = std::min(1.0, ranks.run_ns > 0 ? late.cost.most_ns / ranks.run_ns : 0);
        finding.weight = late.cost_share;
        finding.claim = "the other ranks wait for " + rank + " in " + std::to_string(late.last) + " of " +
                        std::to_string(late.collectives) + " collectives" +
                        (late.margin_ns > 0 ? " where some rank is late by " + us(late.margin_ns) + " or more" : "") +
                        (late.host_bound ? "; it is bound by its host." : ".");
        finding.sure =
            late.collectives < many_collectives || !ranks.contradictions.empty() ? Sureness::likely : Sureness::sure;
        finding.because = "it certainly is the last, whatever the clocks' errors are; " + count(late.expected) +
                          " times would be chance" +
                          (ranks.contradictions.empty() ? "" : "; clocks of other ranks contradict each other");
        finding.refuted_by = "a run in which another process has the device and the cores of " + rank +
                             ", and its own work, and whose steps are as long";
        finding.evidence = {
            {"plumb ranks", rank + " is certainly the last to arrive", {static_cast<double>(late.last), {}}, ""},
            {"plumb ranks", "as many by chance, if all ranks were alike", {late.expected, {}}, ""},
            {"plumb ranks", "later than the one before it, on average", {late.alone_ns / 1e3, {}}, "us"},
        };
        if (late.idle_share.value) {
            finding.evidence.push_back(
                {"plumb ranks", "idle time of its devices", {100 * *late.idle_share.value, {}}, "%"});
            finding.evidence.push_back({"plumb ranks", "idle time of those of the others, median",
                                        late.others_idle_share.value ? Figure{100 * *late.others_idle_share.value, {}}
                                                                     : late.others_idle_share,
                                        "%"});
        }
        if (finding.weight >= least_finding) {
            found.push_back(std::move(finding));
        }
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    return found;
}

} // namespace plumb::findings
