// SPDX-License-Identifier: Apache-2.0
// The witnesses of a pass: whether attention, time and launches say what the repeats say. Whatever speaks for lost kernels, or
// against the units, makes the layers uncertain.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "layers/laid_out.hpp"

namespace plumb {
namespace {

constexpr double fair_copy = 0.6;          // this share of its slots must match
constexpr std::size_t long_change = 3;     // so many kernels missing or foreign in a row are no accident
constexpr std::size_t long_norm = 6;       // kernels: a norm that is not fused
constexpr std::size_t repeated_change = 3; // the same change in so many layers is none
constexpr double launches_differ = 0.25;   // of a layer, from one layer to another
constexpr double some_of_a_layer = 0.1;    // where launches speak, time must only allow it
constexpr double part_of_a_layer = 0.4;    // time or launches enough for this much of a layer are enough for a lost one

double quantile(std::vector<double>& values, double share) {
    if (values.empty()) {
        return 0;
    }
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size()));
    std::nth_element(values.begin(), at, values.end());
    return *at;
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
    Grader(std::span<const SequenceKernel> pass, const LaidOut& laid_out, const DetectionOptions& options,
           LayerFindings& findings)
        : pass_(pass), laid_out_(laid_out), options_(options), findings_(findings) {
        for (const UnitCopy& copy : laid_out.repeats.alignment.copies) {
            copies_.push_back(&copy);
        }
    }

    void order() {
        if (copies_.size() < 2) {
            doubt("no kernels repeat as layers do");
            return;
        }
        findings_.witnesses.repeats = findings_.layers;
        look_at_copies();
        look_between();
        look_at_ends();
        look_at_attention();
        if (options_.layers != 0) {
            told();
        } else {
            look_at_borders();
        }
    }

    void times() {
        if (copies_.size() >= 2 && options_.layers == 0) {
            look_for_holes();
        }
        findings_.certain = findings_.doubts.empty();
    }

  private:
    void doubt(std::string sentence) { findings_.doubts.push_back(std::move(sentence)); }
    const SequenceKernel& kernel(std::size_t position) const { return pass_[laid_out_.main[position]]; }
    std::uint32_t layer_at(std::size_t position) const {
        return findings_.places[laid_out_.main[position]].layer.value_or(0);
    }

    std::uint32_t unit_of(const UnitCopy& copy) const { return findings_.places[laid_out_.main[copy.begin]].unit; }
    const std::vector<std::uint32_t>& names_of(const UnitCopy& copy) const {
        return findings_.units[unit_of(copy)].names;
    }
    /// REQUIRES that the slot is taken.
    bool has_its_name(const UnitCopy& copy, std::size_t slot) const {
        const std::vector<std::uint32_t>& symbols = laid_out_.repeats.units[copy.unit].slots[slot];
        return std::any_of(symbols.begin(), symbols.end(), [&](std::uint32_t symbol) {
            return laid_out_.names[symbol] == kernel(*copy.slots[slot]).name;
        });
    }
    bool is_of_a_layer(std::uint32_t name) const {
        return std::any_of(findings_.units.begin(), findings_.units.end(), [name](const LayerUnit& unit) {
            return std::find(unit.names.begin(), unit.names.end(), name) != unit.names.end();
        });
    }

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
        for (const LayerUnit& unit : findings_.units) {
            if (unit.copies == 1) {
                doubt("a layer of " + plural(unit.names.size(), "kernel") + " is unlike all others");
            }
        }
        // Missing slots and foreign kernels in a row, over the borders of copies too.
        std::size_t missing = 0, foreign = 0;
        std::size_t before = copies_.front()->begin;
        for (const UnitCopy* copy : copies_) {
            for (const auto& slot : copy->slots) {
                if (!slot) {
                    if (++missing == long_change) {
                        doubt("several kernels in a row are missing after kernel " +
                              std::to_string(laid_out_.main[before]));
                    }
                    continue;
                }
                missing = 0;
                foreign = *slot > before + 1 ? *slot - before - 1 : 0;
                if (foreign >= long_change) {
                    doubt(plural(foreign, "kernel") + " after kernel " + std::to_string(laid_out_.main[before]) +
                          " are in no other layer");
                } else if (foreign + 1 == long_change && come_twice(*copy, before + 1, *slot)) {
                    doubt("kernels after kernel " + std::to_string(laid_out_.main[before]) +
                          " come twice in one layer");
                }
                before = *slot;
            }
        }
    }

    /// Whether all these kernels have slots of the unit, which others fill: the rest of a layer that was lost.
    bool come_twice(const UnitCopy& copy, std::size_t begin, std::size_t end) const {
        const std::vector<std::uint32_t>& names = names_of(copy);
        for (std::size_t i = begin; i < end; ++i) {
            if (std::find(names.begin(), names.end(), kernel(i).name) == names.end()) {
                return false;
            }
        }
        return true;
    }

    /// Whether the ends of layers are where they seem. A kernel between two layers is an accident, unless layers have such kernels
    /// or others stand there as well.
    void look_at_ends() {
        const auto often = names_without_slot();
        std::map<std::uint32_t, std::size_t> seen;
        for (const std::size_t i : laid_out_.unclear) {
            const std::uint32_t name = kernel(i).name;
            if (++seen[name] == repeated_change || is_of_a_layer(name) || often.contains(name)) {
                doubt("kernel " + std::to_string(laid_out_.main[i]) + " may belong to the layer before or after it");
                return;
            }
        }
        const UnitCopy &first = *copies_.front(), &last = *copies_.back();
        if (first.begin > 0 &&
            (often.contains(kernel(first.begin - 1).name) || follows_rest_of_a_layer(first) || stands_before(first))) {
            doubt("what stands before the first layer may belong to it");
        }
        if (last.end < laid_out_.main.size() && often.contains(kernel(last.end).name)) {
            doubt("what stands after the last layer may belong to it");
        }
        for (std::size_t c = 0; c < copies_.size(); ++c) {
            const UnitCopy& copy = *copies_[c];
            const bool at_edge = c + 1 == copies_.size() || copies_[c + 1]->begin > copy.end;
            if (at_edge && copy.slots.back() && !has_its_name(copy, copy.slots.size() - 1)) {
                doubt("the last kernel of layer " + std::to_string(layer_at(copy.begin)) + " may stand after it");
            }
        }
    }

    bool has_changed_end(const UnitCopy& copy) const {
        const std::size_t size = copy.slots.size(), looked_at = std::min(size / 2, edge_slots);
        for (std::size_t i = 0; i < looked_at; ++i) {
            for (const std::size_t slot : {i, size - 1 - i}) {
                if (!copy.slots[slot] || (!has_its_name(copy, slot) && is_of_a_layer(kernel(*copy.slots[slot]).name))) {
                    return true;
                }
            }
        }
        return false;
    }

    /// Whether what stands before a copy is as its unit ends, with more than what may end an embedding too.
    bool follows_rest_of_a_layer(const UnitCopy& copy) const {
        const std::vector<std::uint32_t>& names = names_of(copy);
        std::size_t begin = copy.begin;
        while (begin > 0 && copy.begin - begin < names.size() &&
               kernel(begin - 1).name == names[names.size() - 1 - (copy.begin - begin)]) {
            --begin;
        }
        return tells_layer(begin, copy.begin);
    }

    /// Whether these kernels are of a layer, and not what stands around layers too.
    bool tells_layer(std::size_t begin, std::size_t end) const {
        for (std::size_t i = begin; i < end; ++i) {
            if (kernel(i).anchor != LayerAnchor::none && kernel(i).anchor != LayerAnchor::norm) {
                return true;
            }
        }
        return false;
    }

    /// Whether a kernel that the copy lacks at its begin is among as many before it, or one more.
    bool stands_before(const UnitCopy& copy) const {
        const auto taken = std::find_if(copy.slots.begin(), copy.slots.end(), [](const auto& slot) { return slot; });
        const auto lacking = static_cast<std::size_t>(taken - copy.slots.begin());
        const std::vector<std::uint32_t>& names = names_of(copy);
        for (std::size_t back = 1; lacking > 0 && back <= std::min(lacking + 1, copy.begin); ++back) {
            const auto end = names.begin() + static_cast<std::ptrdiff_t>(lacking);
            if (std::find(names.begin(), end, kernel(copy.begin - back).name) != end) {
                return true;
            }
        }
        return false;
    }

    /// Kernels that many copies of a unit have, each at another place, so that the unit has no slot for them. Where the first or last
    /// slot of many is missing, the unit says little about where its layers begin and end.
    std::set<std::uint32_t> names_without_slot() {
        std::vector<std::map<std::uint32_t, std::uint32_t>> copies_with(
            findings_.units.size()); // this name without slot
        std::vector<std::uint32_t> open_ended(findings_.units.size()), changed_ends(findings_.units.size());
        for (const UnitCopy* copy : copies_) {
            std::set<std::uint32_t> names;
            auto slot = copy->slots.begin();
            for (std::size_t i = copy->begin; i < copy->end; ++i) {
                slot = std::find_if(slot, copy->slots.end(), [i](const auto& taken) { return taken && *taken >= i; });
                if (slot == copy->slots.end() || **slot != i) {
                    names.insert(kernel(i).name);
                }
            }
            for (const std::uint32_t name : names) {
                ++copies_with[unit_of(*copy)][name];
            }
            open_ended[unit_of(*copy)] += copy->slots.front() && copy->slots.back() ? 0 : 1;
            changed_ends[unit_of(*copy)] += has_changed_end(*copy) ? 1 : 0;
        }
        std::set<std::uint32_t> often;
        for (std::size_t u = 0; u < findings_.units.size(); ++u) {
            const LayerUnit& unit = findings_.units[u];
            const std::uint32_t many = (unit.copies + 2) / 3;
            bool moves =
                open_ended[u] >= many || 2 * changed_ends[u] >= unit.copies; // what a layer begins or ends with
            for (const auto& [name, copies] : copies_with[u]) {
                const auto slots = std::count(unit.names.begin(), unit.names.end(), name);
                if (copies >= many && slots == 0) {
                    often.insert(name);
                }
                moves = moves ||
                        (copies >= many && slots == 1 && (name == unit.names.front() || name == unit.names.back()));
            }
            if (moves) {
                doubt("layers of " + plural(unit.names.size(), "kernel") + " begin or end in several ways");
            }
        }
        return often;
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
            bool seen = false; // in its slot or out of it
            for (std::size_t i = copy->begin; i < copy->end; ++i) {
                seen = seen || kernel(i).anchor == LayerAnchor::attention;
            }
            attentions += seen ? 0 : laid_out_.attentions[copy->unit];
        }
        findings_.witnesses.anchors = attentions;
        if (attentions != expected) {
            doubt("the repeats say " + plural(expected, "attention") + ", the attention kernels " +
                  std::to_string(attentions));
        }
        if (expected != copies_.size() && options_.layers == 0) {
            doubt("a unit holds " +
                  std::to_string(*std::max_element(laid_out_.attentions.begin(), laid_out_.attentions.end())) +
                  " attentions: as many layers, or as many micro-batches of one; the number of layers decides");
        }
    }

    void told() {
        if (options_.layers != findings_.layers) {
            doubt("the model has " + plural(options_.layers, "layer") + ", found are " +
                  std::to_string(findings_.layers));
        }
    }

    /// A pass that begins or ends with a usual layer, or within one, may have had another there.
    void look_at_borders() {
        if (options_.complete) {
            return;
        }
        const auto usual = [this](const UnitCopy& copy, std::size_t slot) {
            return !copy.slots[slot] || has_its_name(copy, slot);
        };
        const UnitCopy &first = *copies_.front(), &last = *copies_.back();
        const auto [begin, end] = reach();
        if (begin == 0 && laid_out_.main.front() == 0 && (first.begin > 0 || usual(first, 0))) {
            doubt("nothing stands before the first layer: another may have been lost");
        }
        if (end == laid_out_.main.size() && laid_out_.main.back() + 1 == pass_.size() &&
            (last.end < end ? is_begin_of_a_layer(last.end) : usual(last, last.slots.size() - 1))) {
            doubt("nothing stands after the last layer: another may have been lost");
        }
    }

    /// Whether the kernels from here to the end are as a layer begins. If they are all that stands there before the first GEMM, but
    /// for one that may be the GEMM's own, and are too many to be so by chance, they may be the last norm of the model.
    bool is_begin_of_a_layer(std::size_t begin) const {
        const std::size_t size = laid_out_.main.size() - begin;
        return std::any_of(copies_.begin(), copies_.end(), [this, begin, size](const UnitCopy* copy) {
            const std::vector<std::uint32_t>& names = names_of(*copy);
            const std::vector<LayerAnchor>& anchors = laid_out_.repeats.units[copy->unit].anchors;
            std::size_t norm = 0;
            while (norm < anchors.size() &&
                   (anchors[norm] == LayerAnchor::norm || anchors[norm] == LayerAnchor::none)) {
                ++norm;
            }
            bool same = size <= names.size() && !(norm >= long_norm && (size == norm || size + 1 == norm));
            for (std::size_t slot = 0; slot < size && same; ++slot) {
                same = kernel(begin + slot).name == names[slot];
            }
            return same;
        });
    }

    /// What a unit takes, as most of its copies do.
    struct Usual {
        std::vector<double> durations; // of each slot, ns: no more in nine of ten copies
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
                        launches[slot].push_back(
                            static_cast<double>(static_cast<std::int64_t>(there.launch - here.launch)));
                    }
                }
            }
            Usual& of_unit = usual.emplace_back();
            for (std::size_t slot = 0; slot < size; ++slot) {
                of_unit.durations.push_back(quantile(durations[slot], 0.9));
                of_unit.busy += quantile(durations[slot], 0.5);
                of_unit.launches.push_back(quantile(launches[slot], 0.5));
                of_unit.launched += of_unit.launches.back();
            }
        }
        return usual;
    }

    /// A copy and a slot of it.
    struct Spot {
        std::size_t copy = 0, slot = 0;
    };

    /// What lies between two kernels of the main stream.
    struct Hole {
        double idle = 0, missing = 0; // ns: nothing ran, and what the missing slots take
        double launched = 0;          // launches more than the slots have
        bool numbered = false;        // launches have numbers
        bool between_slots = false;   // each of the two is surely in the slot that it has
    };

    /// Launch numbers say it best: if both kernels have slots, whole layers are lost or none. Time must allow it too.
    static bool could_hold_a_layer(const Hole& hole, const Usual& usual) {
        if (usual.busy <= 0) {
            return false;
        }
        if (!hole.numbered || usual.launched <= 0) {
            return hole.idle - hole.missing >= part_of_a_layer * usual.busy;
        }
        const double layers = hole.launched / usual.launched;
        const bool whole = !hole.between_slots || std::abs(layers - std::round(layers)) <= launches_differ;
        return whole && layers >= part_of_a_layer && hole.idle >= some_of_a_layer * usual.busy;
    }

    void count_missing(const std::vector<Usual>& usual, Spot at, const Spot& here, Hole& hole) const {
        while (at.copy != here.copy || at.slot != here.slot) {
            if (hole.between_slots) {
                hole.launched -= usual[copies_[at.copy]->unit].launches[at.slot];
            }
            if (++at.slot == copies_[at.copy]->slots.size()) {
                at = {at.copy + 1, 0};
            }
            if (at.copy != here.copy || at.slot != here.slot) {
                hole.missing += usual[copies_[at.copy]->unit].durations[at.slot];
            }
        }
    }

    /// For each kernel, how long nothing had run when it began, on any stream.
    std::vector<double> idle_before_kernels() const {
        std::vector<double> idle(pass_.size());
        std::int64_t busy_until = *pass_.front().begin_ns;
        for (std::size_t i = 0; i < pass_.size(); ++i) {
            idle[i] = static_cast<double>(*pass_[i].begin_ns - busy_until);
            busy_until = std::max(busy_until, *pass_[i].end_ns);
        }
        return idle;
    }

    /// From the first kernel of layers, or of what could be the rest of one before them, to the last. The norm after the last layer
    /// is like a layer's, for one.
    std::pair<std::size_t, std::size_t> reach() const {
        const auto like_a_layer = [this](std::size_t position) {
            const LayerAnchor anchor = kernel(position).anchor;
            return (anchor != LayerAnchor::none && anchor != LayerAnchor::embedding &&
                    anchor != LayerAnchor::sampling) ||
                   is_of_a_layer(kernel(position).name);
        };
        std::size_t begin = copies_.front()->begin, end = copies_.back()->end;
        while (begin > 0 && like_a_layer(begin - 1)) {
            --begin;
        }
        while (end < laid_out_.main.size() && like_a_layer(end)) {
            ++end;
        }
        return {begin, end};
    }

    /// Where the device was idle between two kernels for longer than what is missing there explains.
    void look_for_holes() {
        if (options_.complete) {
            return;
        }
        if (std::any_of(pass_.begin(), pass_.end(), [](const SequenceKernel& k) { return !k.begin_ns || !k.end_ns; })) {
            doubt("kernels have no times: a lost layer would leave no trace");
            return;
        }
        std::vector<std::optional<Spot>> spots(laid_out_.main.size());
        for (std::size_t c = 0; c < copies_.size(); ++c) {
            for (std::size_t slot = 0; slot < copies_[c]->slots.size(); ++slot) {
                if (copies_[c]->slots[slot]) {
                    spots[*copies_[c]->slots[slot]] = Spot{c, slot};
                }
            }
        }
        const std::vector<double> idle = idle_before_kernels();
        const std::vector<Usual> usual = usual_of_units();
        std::uint64_t lost = 0;
        std::optional<Spot> last; // of a layer
        // A lost layer may have been one of the smallest, whatever stands beside it.
        const Usual& smallest = *std::min_element(usual.begin(), usual.end(),
                                                  [](const Usual& a, const Usual& b) { return a.busy < b.busy; });
        const auto [begin, end] = reach();
        for (std::size_t i = begin; i < std::min(end + 1, laid_out_.main.size()); ++i) {
            const std::optional<Spot>& here = spots[i];
            Hole hole;
            hole.idle = idle[laid_out_.main[i]];
            if (i > 0) {
                hole.launched = static_cast<double>(static_cast<std::int64_t>(kernel(i).launch - kernel(i - 1).launch));
                hole.numbered = kernel(i).launch != 0 && kernel(i - 1).launch != 0;
                hole.between_slots = here && spots[i - 1] && tells_layer(copies_.front()->begin, i) &&
                                     tells_layer(i, copies_.back()->end);
            }
            if (last && here) {
                count_missing(usual, *last, *here, hole);
            }
            if (could_hold_a_layer(hole, smallest)) {
                const auto layers =
                    static_cast<std::uint64_t>(std::max(1.0, std::round((hole.idle - hole.missing) / smallest.busy)));
                doubt("nothing ran for " + microseconds(idle[laid_out_.main[i]]) + " before kernel " +
                      std::to_string(laid_out_.main[i]) + ": time enough for " + plural(layers, "lost layer"));
                lost += layers;
            }
            last = here ? here : last;
        }
        findings_.witnesses.holes = findings_.layers + lost;
    }

    std::span<const SequenceKernel> pass_;
    const LaidOut& laid_out_;
    const DetectionOptions& options_;
    LayerFindings& findings_;
    std::vector<const UnitCopy*> copies_;
};

} // namespace

void grade_order(std::span<const SequenceKernel> pass, const LaidOut& laid_out, const DetectionOptions& options,
                 LayerFindings& findings) {
    Grader(pass, laid_out, options, findings).order();
}

void grade_times(std::span<const SequenceKernel> pass, const LaidOut& laid_out, const DetectionOptions& options,
                 LayerFindings& findings) {
    Grader(pass, laid_out, options, findings).times();
}

} // namespace plumb
