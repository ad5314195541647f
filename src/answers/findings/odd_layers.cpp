// SPDX-License-Identifier: Apache-2.0
// Layers in which a brick takes longer than in the others: from the medians of plumb layers.
#include <algorithm>
#include <map>

#include "answers/findings/detect.hpp"

namespace plumb::findings {
namespace {

bool is_of(const Row& row, const LayerSubject& subject) {
    return row.key.phase == subject.phase && row.key.name == subject.name && row.source == subject.source &&
           row.lap == subject.lap && row.device == subject.device && row.basis == subject.basis;
}

/// Where calls run side by side, sums are of the time in which any of them does.
struct OddSums {
    double here = 0, fastest = 0; // per step: in the odd layer at most, in the fastest of the others
    double calls = 0;             // per step, one after the other, in the odd layer
    double share = 0;             // that the odd layer has of all its time in layers
    double at_once = 1;           // calls, in the odd layer
};

OddSums sums_of(const Report& report, const OddLayer& odd) {
    OddSums sums;
    double all = 0;
    bool any = false;
    for (const Row& row : odd.name.empty() ? report.layers : report.brick_layers) {
        if (!row.key.layer || !is_of(row, odd)) {
            continue;
        }
        const double at_once = calls_at_once(row), sum = row.sum_per_step_ns / at_once;
        all += sum;
        if (*row.key.layer == odd.layer) {
            sums.share = sum;
            sums.calls = row.calls_per_step / at_once;
            sums.here = sum + sums.calls * error_of(row);
            sums.at_once = at_once;
        } else {
            sums.fastest = any ? std::min(sums.fastest, sum) : sum;
            any = true;
        }
    }
    sums.share = all > 0 ? sums.share / all : 0;
    return sums;
}

struct Excess {
    double likely = 0, at_most = 0, off_cpu = 0; // per step
    double at_once = 1;                          // calls
    void add(const Excess& other) {
        likely += other.likely;
        at_most += other.at_most;
        off_cpu += other.off_cpu;
        at_once = std::max(at_once, other.at_once);
    }
};
struct OddInLayer {
    Excess leaves, outer; // of bricks that hold no others; the largest of what does
    double longest = 0;
    const OddLayer* worst = nullptr;
    const OddLayer* widest = nullptr; // of what holds others
    std::vector<EvidenceRow> evidence;
};

Excess excess_of(const FoundInPhase& found, const OddLayer& odd) {
    const OddSums sums = sums_of(found.run.report, odd);
    Excess excess;
    excess.likely = (odd.value - odd.median) * sums.calls;
    excess.at_most = std::max(excess.likely, sums.here - sums.fastest);
    // In which layers the brick was off the CPU is not known: as much in each as it took there.
    const double off_cpu = sums.share * off_cpu_ns(found, odd.name, odd.device);
    excess.off_cpu = std::min(excess.likely, off_cpu);
    excess.at_once = sums.at_once;
    return excess;
}

std::string in_layer(std::uint32_t layer) { return " in layer " + std::to_string(layer); }

std::string name_of(const OddLayer& odd) {
    return (odd.name.empty() ? "the layer as a whole" : odd.name) + (odd.apart.empty() ? "" : " (" + odd.apart + ")");
}

} // namespace

void find_odd_layers(FoundInPhase& found) {
    const bool compared =
        std::any_of(found.run.layers.rows.begin(), found.run.layers.rows.end(),
                    [&](const LayerRow& row) { return row.phase == found.phase && is_compared(row); });
    if (!compared) {
        found.cannot(FindingKind::odd_layer, "fewer than 5 layers have a median of any brick");
        return;
    }
    std::map<std::uint32_t, OddInLayer> layers;
    for (const OddLayer& odd : found.run.layers.odd) {
        if (odd.phase != found.phase || odd.value <= odd.median) {
            continue;
        }
        const Excess excess = excess_of(found, odd);
        OddInLayer& layer = layers[odd.layer];
        if (!odd.parent && !odd.name.empty()) {
            layer.leaves.add(excess);
        } else if (excess.likely > layer.outer.likely) {
            layer.outer = excess;
            layer.widest = &odd;
        }
        // The brick says more than the layer that it lies in.
        if (layer.worst == nullptr || layer.worst->name.empty() ||
            (excess.likely > layer.longest && !odd.name.empty())) {
            layer.longest = excess.likely;
            layer.worst = &odd;
        }
        layer.evidence.push_back(
            {"plumb layers", name_of(odd) + in_layer(odd.layer) + ", median call", {odd.value / 1e3, {}}, "us"});
        layer.evidence.push_back({"plumb layers", name_of(odd) + " in the other layers", {odd.median / 1e3, {}}, "us"});
        layer.evidence.push_back(
            {"plumb layers", name_of(odd) + in_layer(odd.layer) + ", robust deviations", {odd.robust_z, {}}, ""});
    }
    for (auto& [number, layer] : layers) {
        const bool by_leaves = layer.widest == nullptr || layer.leaves.likely > layer.outer.likely;
        const Excess& excess = by_leaves ? layer.leaves : layer.outer;
        if (!by_leaves && !layer.worst->parent && !layer.worst->name.empty()) {
            layer.worst = layer.widest; // that brick is the least of it
        }
        Finding finding;
        finding.kind = FindingKind::odd_layer;
        finding.subject = layer.worst->name;
        finding.layer = number;
        // Time off the CPU is a finding of its own.
        finding.likely_ns = (excess.likely - excess.off_cpu) * share_of_path(found, finding.subject);
        finding.at_most_ns = excess.at_most;
        finding.claim = name_of(*layer.worst) + " takes " + page::fixed(layer.worst->value / layer.worst->median, 2) +
                        " times as long in layer " + std::to_string(number) + " as in the others.";
        finding.evidence = std::move(layer.evidence);
        finding.refuted_by = "a model whose layer " + std::to_string(number) +
                             " is meant to do more; or another run in which it is as fast as the others";
        const bool shared = excess.at_once > side_by_side;
        if (shared) {
            finding.evidence.push_back(
                {"plumb report", "calls of it that run side by side" + in_layer(number), {excess.at_once, {}}, ""});
        }
        found.add(std::move(finding), shared ? Sureness::likely : Sureness::sure,
                  std::string("medians of many calls, far beyond their spread") +
                      (shared ? "; calls that run side by side need not wait for each other" : ""),
                  found.wall.steps);
    }
}

} // namespace plumb::findings
