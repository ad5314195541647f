// SPDX-License-Identifier: Apache-2.0
// The witnesses of a pass: whether attention, time and launches say what the repeats say. Whatever speaks for lost kernels, or
// against the units, makes the layers uncertain.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "layers/laid_out.hpp"

namespace plumb {
namespace {

constexpr double fair_copy = 0.6;        // this share of its slots must match
constexpr std::size_t long_change = 3;   // so many kernels missing or foreign in a row are no accident
constexpr double part_of_a_layer = 0.5;  // time or launches enough for this much of a layer are enough for a lost one

template <class T>
T median(std::vector<T>& values) {
    if (values.empty()) {
        return {};
    }
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::string plural(std::uint64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string microseconds(double ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f us", ns / 1000);
    return text;
}

class Grader {
public:
    Grader(std::span<const SequenceKernel> pass, const LaidOut& laid_out, const LayerOptions& options, LayerFindings& findings)
        : pass_(pass), laid_out_(laid_out), options_(options), findings_(findings) {
        for (const UnitCopy& copy : laid_out.repeats.alignment.copies) {
            if (laid_out.is_layer(copy)) {
                copies_.push_back(&copy);
            }
        }
    }

    void run() {
        if (copies_.size() < 2) {
            doubt("no kernels repeat as layers do");
            return;
        }
        findings_.witnesses.repeats = findings_.layers;
        look_at_copies();
        look_between();
        look_at_attention();
        if (options_.layers != 0) {
            told();
        } else {
            look_at_borders();
            look_for_holes();
        }
        findings_.certain = findings_.doubts.empty();
    }

private:
    void doubt(std::string sentence) { findings_.doubts.push_back(std::move(sentence)); }
    const SequenceKernel& kernel(std::size_t position) const { return pass_[laid_out_.main[position]]; }
    std::uint32_t layer_at(std::size_t position) const { return findings_.places[laid_out_.main[position]].layer.value_or(0); }

    void look_at_copies() {
        for (const UnitCopy* copy : copies_) {
            const std::string layer = "layer " + std::to_string(layer_at(copy->begin));
            if (copy->midway) {
                doubt(layer + " begins or ends within");
            } else if (copy->share() < fair_copy) {
                doubt(layer + " is unlike the others: " + std::to_string(copy->matched) + " of " +
                      plural(copy->slots.size(), "kernel"));
            }
        }
        // Missing slots and foreign kernels in a row, over the borders of copies too.
        std::size_t missing = 0, foreign = 0;
        std::size_t before = copies_.front()->begin;
        for (const UnitCopy* copy : copies_) {
            for (const auto& slot : copy->slots) {
                if (!slot) {
                    if (++missing == long_change) {
                        doubt("several kernels in a row are missing after kernel " + std::to_string(laid_out_.main[before]));
                    }
                    continue;
                }
                missing = 0;
                foreign = *slot > before + 1 ? *slot - before - 1 : 0;
                if (foreign >= long_change) {
                    doubt(plural(foreign, "kernel") + " after kernel " + std::to_string(laid_out_.main[before]) +
                          " are in no other layer");
                }
                before = *slot;
            }
        }
    }

    /// Attention outside all layers.
    void look_between() {
        std::vector<char> inside(laid_out_.main.size());
        for (const UnitCopy* copy : copies_) {
            std::fill(inside.begin() + static_cast<std::ptrdiff_t>(copy->begin),
                      inside.begin() + static_cast<std::ptrdiff_t>(copy->end), char{1});
        }
        for (std::size_t i = 0; i < inside.size(); ++i) {
            if (inside[i] == 0 && kernel(i).anchor == LayerAnchor::attention) {
                doubt("attention kernel " + std::to_string(laid_out_.main[i]) + " is in no layer");
                return;
            }
        }
    }

    void look_at_attention() {
        if (!laid_out_.anchored) {
            doubt("no attention kernel is known: nothing confirms the repeats");
            return;
        }
        std::vector<LayerAnchor> anchors;
        for (const std::size_t i : laid_out_.main) {
            anchors.push_back(pass_[i].anchor);
        }
        std::uint32_t attentions = count_attentions(anchors);
        std::uint32_t expected = 0;
        for (const UnitCopy* copy : copies_) {
            expected += laid_out_.attentions[copy->unit];
            const bool seen = std::any_of(copy->slots.begin(), copy->slots.end(), [this](const auto& slot) {
                return slot && kernel(*slot).anchor == LayerAnchor::attention;
            });
            attentions += seen ? 0 : laid_out_.attentions[copy->unit];
        }
        findings_.witnesses.anchors = attentions;
        if (attentions != expected) {
            doubt("the repeats say " + plural(expected, "attention") + ", the attention kernels " + std::to_string(attentions));
        }
        if (expected != copies_.size() && options_.layers == 0) {
            doubt("a unit holds " + std::to_string(*std::max_element(laid_out_.attentions.begin(), laid_out_.attentions.end())) +
                  " attentions: as many layers, or as many micro-batches of one; the number of layers decides");
        }
    }

    void told() {
        if (options_.layers != findings_.layers) {
            doubt("the model has " + plural(options_.layers, "layer") + ", found are " + std::to_string(findings_.layers));
        }
    }

    /// A pass that begins with a usual layer may have begun with another before it.
    void look_at_borders() {
        if (options_.complete) {
            return;
        }
        const auto usual = [this](const UnitCopy& copy, std::size_t slot) {
            const auto& accepted = laid_out_.repeats.units[copy.unit].slots[slot];
            const std::uint32_t unit = findings_.places[laid_out_.main[copy.begin]].unit;
            return copy.slots[slot] && (accepted.size() > 1 || kernel(*copy.slots[slot]).name == findings_.units[unit].names[slot]);
        };
        if (copies_.front()->begin == 0 && laid_out_.main.front() == 0 && usual(*copies_.front(), 0)) {
            doubt("nothing stands before the first layer: another may have been lost");
        }
        if (copies_.back()->end == laid_out_.main.size() && laid_out_.main.back() + 1 == pass_.size() &&
            usual(*copies_.back(), copies_.back()->slots.size() - 1)) {
            doubt("nothing stands after the last layer: another may have been lost");
        }
    }

    /// What a unit takes, as most of its copies do.
    struct Usual {
        std::vector<double> longest;   // of each slot, ns
        std::vector<double> launches;  // from each slot to the next
        double busy = 0, launched = 0; // of a copy
    };

    std::vector<Usual> usual_of_units() const {
        std::vector<Usual> usual;
        for (std::size_t unit = 0; unit < laid_out_.repeats.units.size(); ++unit) {
            const std::size_t size = laid_out_.repeats.units[unit].slots.size();
            std::vector<std::vector<double>> durations(size), launches(size);
            for (std::size_t c = 0; c < copies_.size(); ++c) {
                const UnitCopy& copy = *copies_[c];
                if (copy.unit != unit) {
                    continue;
                }
                for (std::size_t slot = 0; slot < size; ++slot) {
                    if (!copy.slots[slot]) {
                        continue;
                    }
                    const SequenceKernel& here = kernel(*copy.slots[slot]);
                    if (here.begin_ns && here.end_ns) {
                        durations[slot].push_back(static_cast<double>(*here.end_ns - *here.begin_ns));
                    }
                    const UnitCopy* next = slot + 1 < size ? &copy : c + 1 < copies_.size() ? copies_[c + 1] : nullptr;
                    if (next != nullptr && next->slots[(slot + 1) % size % next->slots.size()]) {
                        const SequenceKernel& there = kernel(*next->slots[(slot + 1) % size % next->slots.size()]);
                        launches[slot].push_back(static_cast<double>(static_cast<std::int64_t>(there.launch - here.launch)));
                    }
                }
            }
            Usual& of_unit = usual.emplace_back();
            for (std::size_t slot = 0; slot < size; ++slot) {
                of_unit.longest.push_back(durations[slot].empty() ? 0 : *std::max_element(durations[slot].begin(), durations[slot].end()));
                of_unit.busy += median(durations[slot]);
                of_unit.launches.push_back(median(launches[slot]));
                of_unit.launched += of_unit.launches.back();
            }
        }
        return usual;
    }

    /// Where the device was idle between two kernels for longer than what is missing there explains.
    void look_for_holes() {
        if (options_.complete) {
            return;
        }
        if (std::any_of(pass_.begin(), pass_.end(), [](const SequenceKernel& k) {
                return !k.begin_ns || !k.end_ns;
            })) {
            doubt("kernels have no times: a lost layer would leave no trace");
            return;
        }
        struct Spot {
            std::size_t copy, slot;
        };
        std::vector<std::optional<Spot>> spots(laid_out_.main.size());
        for (std::size_t c = 0; c < copies_.size(); ++c) {
            for (std::size_t slot = 0; slot < copies_[c]->slots.size(); ++slot) {
                if (copies_[c]->slots[slot]) {
                    spots[*copies_[c]->slots[slot]] = Spot{c, slot};
                }
            }
        }
        const std::vector<Usual> usual = usual_of_units();
        std::uint32_t lost = 0;
        std::int64_t idle_since = *pass_.front().end_ns;
        std::size_t position = 0; // of the next kernel of the main stream
        std::optional<Spot> before; // the last slot that was seen, or nothing before the first
        double skipped_launches = 0;
        for (std::size_t i = 0; i < pass_.size(); ++i) {
            const double idle = static_cast<double>(*pass_[i].begin_ns - idle_since);
            idle_since = std::max(idle_since, *pass_[i].end_ns);
            if (position == laid_out_.main.size() || laid_out_.main[position] != i) {
                continue;
            }
            const std::optional<Spot> here = spots[position++];
            const std::size_t unit = here ? copies_[here->copy]->unit : before ? copies_[before->copy]->unit : 0;
            if (!here && !before) {
                continue;
            }
            // From the last slot to this one: what is missing, and how many launches that is.
            double missing = 0, launches = 0;
            if (before && here) {
                for (Spot at = *before; at.copy != here->copy || at.slot != here->slot;) {
                    const Usual& of_unit = usual[copies_[at.copy]->unit];
                    launches += of_unit.launches[at.slot];
                    if (++at.slot == copies_[at.copy]->slots.size()) {
                        at = {at.copy + 1, 0};
                    }
                    if (at.copy != here->copy || at.slot != here->slot) {
                        missing += usual[copies_[at.copy]->unit].longest[at.slot];
                    }
                }
            }
            const Usual& smaller = before && usual[copies_[before->copy]->unit].busy < usual[unit].busy
                                       ? usual[copies_[before->copy]->unit]
                                       : usual[unit];
            const std::uint64_t launch_before = i > 0 ? pass_[laid_out_.main[position >= 2 ? position - 2 : 0]].launch : 0;
            const double launched = static_cast<double>(static_cast<std::int64_t>(pass_[i].launch - launch_before));
            skipped_launches = here && before && position >= 2 && spots[position - 2] ? launches : 0;
            const bool counted = smaller.launched > 0 && pass_[i].launch != 0 && launch_before != 0;
            if (idle - missing >= part_of_a_layer * smaller.busy && smaller.busy > 0 &&
                (!counted || launched - skipped_launches >= part_of_a_layer * smaller.launched)) {
                const auto layers = static_cast<std::uint32_t>(std::max(1.0, std::round((idle - missing) / smaller.busy)));
                doubt("nothing ran for " + microseconds(idle) + " before kernel " + std::to_string(i) + ": time enough for " +
                      plural(layers, "lost layer"));
                lost += layers;
            }
            if (here) {
                before = here;
            } else if (before && before->copy + 1 == copies_.size()) {
                break; // behind the first kernel after the last layer
            }
        }
        findings_.witnesses.holes = findings_.layers + lost;
    }

    std::span<const SequenceKernel> pass_;
    const LaidOut& laid_out_;
    const LayerOptions& options_;
    LayerFindings& findings_;
    std::vector<const UnitCopy*> copies_;
};

} // namespace

void grade(std::span<const SequenceKernel> pass, const LaidOut& laid_out, const LayerOptions& options, LayerFindings& findings) {
    Grader(pass, laid_out, options, findings).run();
}

} // namespace plumb
