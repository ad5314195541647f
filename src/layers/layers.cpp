// SPDX-License-Identifier: Apache-2.0
#include "layers/layers.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "layers/laid_out.hpp"

namespace plumb {
namespace {

constexpr double most_kernels = 0.6;       // a stream with fewer of them holds no pass alone
constexpr std::size_t foreign_at_edge = 2; // so many kernels between the outermost slot and the next
constexpr double rarely = 0.05;            // of all changes from stream to stream

/// Whether kernels of different streams run at the same time, so that their order says little. Without times: not known, so yes.
bool streams_overlap(std::span<const SequenceKernel> kernels) {
    std::size_t changes = 0, overlaps = 0;
    for (std::size_t i = 1; i < kernels.size(); ++i) {
        if (kernels[i].stream != kernels[i - 1].stream) {
            ++changes;
            overlaps +=
                !kernels[i].begin_ns || !kernels[i - 1].end_ns || *kernels[i].begin_ns < *kernels[i - 1].end_ns ? 1 : 0;
        }
    }
    return static_cast<double>(overlaps) > rarely * static_cast<double>(changes);
}

} // namespace

std::vector<std::size_t> main_stream(std::span<const SequenceKernel> kernels) {
    struct Count {
        std::size_t attentions = 0, kernels = 0;
    };
    std::map<std::uint32_t, Count> counts;
    Count* count = nullptr; // of the stream of the kernel before
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (i == 0 || kernels[i].stream != kernels[i - 1].stream) {
            count = &counts[kernels[i].stream];
        }
        ++count->kernels;
        count->attentions += kernels[i].anchor == LayerAnchor::attention ? 1 : 0;
    }
    const auto most = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.attentions, a.second.kernels) < std::pair(b.second.attentions, b.second.kernels);
    });
    const bool all = most == counts.end() || !streams_overlap(kernels) ||
                     static_cast<double>(most->second.kernels) < most_kernels * static_cast<double>(kernels.size());
    std::vector<std::size_t> main;
    main.reserve(kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        if (all || kernels[i].stream == most->first) {
            main.push_back(i);
        }
    }
    return main;
}

namespace {

/// How many layers one copy of each unit holds.
std::vector<std::uint32_t> layers_in_copies(const LaidOut& laid_out, const std::vector<std::uint32_t>& copies,
                                            std::uint32_t told) {
    std::uint32_t all = 0, by_attention = 0;
    for (std::size_t unit = 0; unit < copies.size(); ++unit) {
        all += copies[unit];
        by_attention += copies[unit] * std::max(1u, laid_out.attentions[unit]);
    }
    std::vector<std::uint32_t> layers(copies.size(), 1);
    if (told != 0 && told != all && told == by_attention) {
        for (std::size_t unit = 0; unit < layers.size(); ++unit) {
            layers[unit] = std::max(1u, laid_out.attentions[unit]);
        }
    }
    return layers;
}

/// For each slot of a unit, which of the layers of a copy it belongs to.
std::vector<std::uint32_t> layers_of_slots(const std::vector<LayerAnchor>& slots, std::uint32_t layers) {
    std::vector<std::uint32_t> of_slots(slots.size(), 0);
    std::vector<std::size_t> starts = layer_starts(slots);
    std::sort(starts.begin(), starts.end());
    if (starts.size() != layers) { // no norm says where: in equal parts
        starts.clear();
        for (std::uint32_t layer = 0; layer < layers; ++layer) {
            starts.push_back(slots.size() * layer / layers);
        }
    }
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
        const auto after = std::upper_bound(starts.begin(), starts.end(), slot);
        of_slots[slot] = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(1, after - starts.begin()) - 1);
    }
    return of_slots;
}

/// Kernels of other streams are where the main stream was when they began.
void place_the_others(const LaidOut& laid_out, std::vector<KernelPlace>& places) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        if (next < laid_out.main.size() && laid_out.main[next] == i) {
            ++next;
        } else if (next > 0) {
            const KernelPlace& before = places[laid_out.main[next - 1]];
            places[i].layer = before.layer;
            places[i].unit = before.unit;
        }
    }
}

} // namespace

std::uint32_t count_attentions(std::span<const LayerAnchor> anchors) {
    std::uint32_t count = 0, between = 2;
    for (const LayerAnchor anchor : anchors) {
        if (anchor == LayerAnchor::attention) {
            count += between >= 2 ? 1 : 0;
            between = 0;
        } else if (anchor == LayerAnchor::norm || anchor == LayerAnchor::gemm || anchor == LayerAnchor::mlp ||
                   anchor == LayerAnchor::router) {
            ++between;
        }
    }
    return count;
}

namespace {

/// The outermost slots of a copy, as long as what stands there is rather the outside: foreign kernels part it from the rest, or
/// something parts it and it is another kernel besides.
void trim(UnitCopy& copy, const RepeatUnit& unit, std::span<const std::uint32_t> symbols,
          std::span<const LayerAnchor> anchors, bool at_end) {
    std::vector<std::size_t> taken; // slots, from the outside inwards
    for (std::size_t slot = 0; slot < copy.slots.size(); ++slot) {
        if (copy.slots[slot]) {
            taken.push_back(slot);
        }
    }
    if (at_end) {
        std::reverse(taken.begin(), taken.end());
    }
    const auto distance = [](std::size_t a, std::size_t b) {
        return a > b ? a - b : b - a;
    };
    for (std::size_t i = 0; i + 1 < taken.size() && 2 * i < taken.size(); ++i) {
        const std::size_t here = *copy.slots[taken[i]], inner = *copy.slots[taken[i + 1]];
        const std::size_t foreign = distance(here, inner) - 1, missing = distance(taken[i], taken[i + 1]) - 1;
        const std::vector<std::uint32_t>& names = unit.slots[taken[i]];
        const bool same_anchor = anchors[here] != LayerAnchor::none && anchors[here] == unit.anchors[taken[i]];
        const bool same_name = std::find(names.begin(), names.end(), symbols[here]) != names.end();
        // After the last layer come a norm and a GEMM, as in a layer. Before the first comes nothing that looks like one.
        const bool like_a_layer = same_anchor && !(at_end && foreign > 0);
        if (foreign < foreign_at_edge && (same_name || like_a_layer || foreign + missing == 0)) {
            return;
        }
        copy.slots[taken[i]].reset();
        copy.matched -= same_name ? 1 : 0;
        (at_end ? copy.end : copy.begin) = at_end ? inner + 1 : inner;
    }
}

/// Kernels between the slots of two copies belong to the copy that lacks them. They get no slot: slots are in the order of kernels.
/// Gives those that belong to either, though the copies leave nothing between them.
class Borders {
  public:
    Borders(std::vector<UnitCopy>& copies, const std::vector<RepeatUnit>& units, std::span<const std::uint32_t> symbols)
        : copies_(copies), units_(units), symbols_(symbols) {}

    std::vector<std::size_t> settle() {
        std::vector<std::size_t> unclear;
        for (std::size_t c = 0; c <= copies_.size(); ++c) {
            if (c > 0 && c < copies_.size()) {
                release(copies_[c - 1], true, copies_[c]);
                release(copies_[c], false, copies_[c - 1]);
            }
            std::size_t begin = c > 0 ? last_taken(copies_[c - 1]) + 1 : 0;
            std::size_t end = c < copies_.size() ? first_taken(copies_[c]) : symbols_.size();
            while (begin < end && before_lacks(c, begin) && !after_lacks(c, begin)) {
                ++begin;
            }
            while (begin < end && after_lacks(c, end - 1) && !before_lacks(c, end - 1)) {
                --end;
            }
            if (c > 0) {
                copies_[c - 1].end = std::clamp(copies_[c - 1].end, begin, end);
            }
            if (c < copies_.size()) {
                copies_[c].begin = std::clamp(copies_[c].begin, begin, end);
            }
            for (std::size_t i = begin;
                 c > 0 && c < copies_.size() && copies_[c - 1].end == copies_[c].begin && i < end; ++i) {
                unclear.push_back(i);
            }
        }
        return unclear;
    }

  private:
    static std::size_t first_taken(const UnitCopy& copy) {
        const auto slot =
            std::find_if(copy.slots.begin(), copy.slots.end(), [](const auto& s) { return s.has_value(); });
        return slot == copy.slots.end() ? copy.end : **slot;
    }
    static std::size_t last_taken(const UnitCopy& copy) {
        const auto slot =
            std::find_if(copy.slots.rbegin(), copy.slots.rend(), [](const auto& s) { return s.has_value(); });
        return slot == copy.slots.rend() ? copy.begin : **slot;
    }
    /// Whether one of the outermost slots lacks this kernel: it was swapped with its neighbour.
    bool lacks(const UnitCopy& copy, std::uint32_t symbol, bool at_end) const {
        const std::size_t size = copy.slots.size(), looked_at = std::min(size, edge_slots);
        for (std::size_t slot = at_end ? size - looked_at : 0; slot < (at_end ? size : looked_at); ++slot) {
            const std::vector<std::uint32_t>& names = units_[copy.unit].slots[slot];
            const auto has = [&names](std::uint32_t name) {
                return std::find(names.begin(), names.end(), name) != names.end();
            };
            if (has(symbol) && !(copy.slots[slot] && has(symbols_[*copy.slots[slot]]))) {
                return true;
            }
        }
        return false;
    }
    /// The outermost slot, where it was given to a kernel that the neighbour lacks.
    void release(UnitCopy& copy, bool at_end, const UnitCopy& neighbour) const {
        const std::size_t i = at_end ? last_taken(copy) : first_taken(copy);
        const auto slot = std::find(copy.slots.begin(), copy.slots.end(), std::optional(i));
        if (slot != copy.slots.end() && first_taken(copy) != last_taken(copy)) {
            const std::vector<std::uint32_t>& names =
                units_[copy.unit].slots[static_cast<std::size_t>(slot - copy.slots.begin())];
            if (std::find(names.begin(), names.end(), symbols_[i]) == names.end() &&
                lacks(neighbour, symbols_[i], !at_end)) {
                slot->reset();
            }
        }
    }
    bool before_lacks(std::size_t c, std::size_t i) const { return c > 0 && lacks(copies_[c - 1], symbols_[i], true); }
    bool after_lacks(std::size_t c, std::size_t i) const {
        return c < copies_.size() && lacks(copies_[c], symbols_[i], false);
    }

    std::vector<UnitCopy>& copies_;
    const std::vector<RepeatUnit>& units_;
    std::span<const std::uint32_t> symbols_;
};

} // namespace

LaidOut lay_out(std::span<const SequenceKernel> kernels, const std::atomic<bool>* stop) {
    LaidOut laid_out;
    laid_out.main = main_stream(kernels);
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;
    std::vector<std::uint32_t> symbols;
    std::vector<LayerAnchor> anchors;
    for (const std::size_t i : laid_out.main) {
        const auto [found, is_new] =
            numbers.try_emplace(kernels[i].name, static_cast<std::uint32_t>(laid_out.names.size()));
        if (is_new) {
            laid_out.names.push_back(kernels[i].name);
        }
        symbols.push_back(found->second);
        anchors.push_back(kernels[i].anchor);
    }
    laid_out.repeats = find_repeats(symbols, anchors, stop);
    for (const RepeatUnit& unit : laid_out.repeats.units) {
        laid_out.attentions.push_back(count_attentions(unit.anchors));
        laid_out.anchored = laid_out.attentions.back() > 0;
    }
    if (laid_out.anchored) {
        std::erase_if(laid_out.repeats.alignment.copies, [&anchors](const UnitCopy& copy) {
            return copy.midway && std::none_of(copy.slots.begin(), copy.slots.end(), [&anchors](const auto& slot) {
                       return slot && anchors[*slot] != LayerAnchor::none && anchors[*slot] != LayerAnchor::norm;
                   });
        });
    }
    std::vector<UnitCopy>& copies = laid_out.repeats.alignment.copies;
    for (std::size_t c = 0; c < copies.size(); ++c) {
        if (c == 0 || copies[c - 1].end < copies[c].begin) {
            trim(copies[c], laid_out.repeats.units[copies[c].unit], symbols, anchors, false);
        }
        if (c + 1 == copies.size() || copies[c].end < copies[c + 1].begin) {
            trim(copies[c], laid_out.repeats.units[copies[c].unit], symbols, anchors, true);
        }
    }
    laid_out.unclear = Borders(copies, laid_out.repeats.units, symbols).settle();
    return laid_out;
}

namespace {

LayerFindings read_layers(std::span<const SequenceKernel> pass, const LaidOut& laid_out,
                          const DetectionOptions& options) {
    const Repeats& repeats = laid_out.repeats;
    LayerFindings findings;
    findings.places.resize(pass.size());
    std::vector<std::uint32_t> copies(repeats.units.size());
    for (const UnitCopy& copy : repeats.alignment.copies) {
        ++copies[copy.unit];
    }
    const std::vector<std::uint32_t> layers = layers_in_copies(laid_out, copies, options.layers);
    // Units that are layers, in the order of their first copy, and the name of each slot as the caller knows it.
    std::vector<std::optional<std::uint32_t>> unit_numbers(repeats.units.size());
    std::vector<std::vector<std::uint32_t>> of_slots;
    for (std::size_t unit = 0; unit < repeats.units.size(); ++unit) {
        of_slots.push_back(layers_of_slots(repeats.units[unit].anchors, layers[unit]));
    }
    for (const UnitCopy& copy : repeats.alignment.copies) {
        if (!unit_numbers[copy.unit]) {
            unit_numbers[copy.unit] = static_cast<std::uint32_t>(findings.units.size());
            LayerUnit& unit = findings.units.emplace_back();
            for (const std::vector<std::uint32_t>& names : repeats.units[copy.unit].slots) {
                unit.names.push_back(laid_out.names[names.front()]);
            }
            unit.copies = copies[copy.unit];
            unit.layers = copies[copy.unit] * layers[copy.unit];
        }
        const std::uint32_t unit = *unit_numbers[copy.unit];
        std::uint32_t layer = 0;
        std::size_t slot = 0;
        for (std::size_t i = copy.begin; i < copy.end; ++i) {
            KernelPlace& place = findings.places[laid_out.main[i]];
            while (slot < copy.slots.size() && (!copy.slots[slot] || *copy.slots[slot] < i)) {
                ++slot;
            }
            if (slot < copy.slots.size() && *copy.slots[slot] == i) {
                layer = of_slots[copy.unit][slot];
                place.slot = static_cast<std::uint32_t>(slot);
            }
            place.layer = findings.layers + layer;
            place.unit = unit;
        }
        findings.layers += layers[copy.unit];
    }
    place_the_others(laid_out, findings.places);
    grade_order(pass, laid_out, options, findings);
    return findings;
}

/// Whether both are laid out alike: times matter only for which stream is the main one.
bool same_order(std::span<const SequenceKernel> a, std::span<const SequenceKernel> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SequenceKernel& x, const SequenceKernel& y) {
        return x.name == y.name && x.anchor == y.anchor;
    });
}

} // namespace

LayerFindings find_layers(std::span<const SequenceKernel> pass, const DetectionOptions& options) {
    const LaidOut laid_out = lay_out(pass, options.stop);
    LayerFindings findings = read_layers(pass, laid_out, options);
    grade_times(pass, laid_out, options, findings);
    return findings;
}

std::vector<LayerFindings> find_layers(std::size_t replays,
                                       const std::function<std::vector<SequenceKernel>(std::size_t)>& kernels_of,
                                       const DetectionOptions& options) {
    // What was lost in one replay was not lost in the next: where two have the same kernels, they have all.
    std::map<std::vector<std::uint32_t>, std::size_t> alike;
    std::vector<const std::size_t*> counts_alike; // of each replay
    for (std::size_t i = 0; i < replays; ++i) {
        std::vector<std::uint32_t> names;
        for (const SequenceKernel& kernel : kernels_of(i)) {
            names.push_back(kernel.name);
        }
        counts_alike.push_back(&++alike[std::move(names)]);
    }
    std::vector<LayerFindings> found;
    std::map<std::uint32_t, std::size_t> counts;
    std::vector<SequenceKernel> last; // most replays are laid out as the one before
    LaidOut laid_out;
    LayerFindings known; // of it, without times and places
    std::size_t first = 0;
    for (std::size_t i = 0; i < replays; ++i) {
        std::vector<SequenceKernel> replay = kernels_of(i);
        DetectionOptions of_replay = options;
        of_replay.complete = options.complete || *counts_alike[i] > 1;
        if (i > 0 && same_order(last, replay) && main_stream(replay) == laid_out.main) {
            found.push_back(known);
            found.back().like = first;
            grade_times(replay, laid_out, of_replay, found.back());
        } else {
            laid_out = lay_out(replay, options.stop);
            LayerFindings& findings = found.emplace_back(read_layers(replay, laid_out, of_replay));
            known = findings;
            known.places = {};
            first = i;
            grade_times(replay, laid_out, of_replay, findings);
            last = std::move(replay);
        }
        ++counts[found.back().layers];
    }
    if (replays < 2) {
        return found;
    }
    const std::uint32_t most = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                                   return a.second < b.second;
                               })->first;
    for (LayerFindings& findings : found) {
        findings.witnesses.replays = most;
        if (findings.layers != most) {
            findings.certain = false;
            findings.doubts.push_back("other replays of the same graph have " + std::to_string(most) +
                                      " layers, this one " + std::to_string(findings.layers));
        }
    }
    return found;
}

} // namespace plumb
