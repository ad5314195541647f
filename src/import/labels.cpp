// SPDX-License-Identifier: Apache-2.0
#include "import/labels.hpp"

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "import/device_parts.hpp"
#include "import/rules/brick_name.hpp"
#include "import/rules/kernel_place.hpp"

namespace plumb::imported {
namespace {

constexpr std::size_t most_bricks = 8192;     // of the names that a recording may have
constexpr std::uint32_t most_layers = 0xfffe; // that a recording can number

using LabelId = std::uint32_t;

/// Every label once, by number: of millions of operations there are some dozens.
class KnownLabels {
  public:
    LabelId id(const KernelLabel& label) {
        const auto [found, is_new] = ids_.try_emplace(label, static_cast<LabelId>(labels_.size()));
        if (is_new) {
            labels_.push_back(label);
        }
        return found->second;
    }
    const KernelLabel& operator[](LabelId id) const { return labels_[id]; }

  private:
    struct Hash {
        std::size_t operator()(const KernelLabel& label) const {
            const std::hash<std::string_view> of;
            return of(label.brick) ^ (of(label.piece) << 1) ^ static_cast<std::size_t>(label.evidence);
        }
    };
    std::vector<KernelLabel> labels_;
    std::unordered_map<KernelLabel, LabelId, Hash> ids_;
};

/// What one name says, once for all operations that have it.
class NameLabels {
  public:
    NameLabels(const Trace& trace, KernelRules& rules, bool names, KnownLabels& known)
        : trace_(trace), rules_(rules), names_(names), known_(known), ids_(kinds * trace.names.size(), unread) {}

    LabelId of(const DeviceOp& op) {
        LabelId& id = ids_[kinds * op.name + static_cast<std::size_t>(op.kind)];
        if (id == unread) {
            id = known_.id(read(op));
        }
        return id;
    }

  private:
    static constexpr std::size_t kinds = 4; // of operations
    static constexpr LabelId unread = std::numeric_limits<LabelId>::max();

    /// What the device itself calls a copy or a fill needs no rule.
    KernelLabel read(const DeviceOp& op) {
        if (op.kind == DeviceOpKind::memcpy) {
            return {copy_brick(trace_.names[op.name]), {}, Certainty::strong, Anchor::none, LabelEvidence::name};
        }
        if (op.kind == DeviceOpKind::memset) {
            return rules_.label("Memset");
        }
        return names_ && op.kind == DeviceOpKind::kernel ? rules_.label(trace_.names[op.name]) : KernelLabel();
    }

    const Trace& trace_;
    KernelRules& rules_;
    bool names_;
    KnownLabels& known_;
    std::vector<LabelId> ids_; // by name and kind
};

/// The operations of one step, or of no step, in the order in which they began. Where devices run side by side: those of one device.
struct OpsOfStep {
    std::uint16_t process = 0;
    std::uint32_t step = no_step;
    std::optional<std::uint32_t> device;                  // none: of all
    std::vector<std::uint32_t> ops;                       // in Trace::ops
    std::shared_ptr<const std::vector<std::size_t>> main; // of them, those of the main stream
    const Replay* replay = nullptr;                       // that makes up most of the step
};

class Labeller {
  public:
    Labeller(const Trace& trace, const EngineSteps& steps, KernelRules& rules, const LabelOptions& options)
        : trace_(trace), steps_(steps), options_(options), names_(trace, rules, options.names, known_) {}

    Labels label() {
        labels_.reserve(trace_.ops.size());
        for (const DeviceOp& op : trace_.ops) {
            labels_.push_back(names_.of(op));
        }
        made_.layer_of.assign(trace_.ops.size(), 0);
        if (options_.places) {
            place_all();
        }
        sort_passes();
        passes_found_ = made_.passes.size();
        if (options_.modules != nullptr && options_.modules->labels.size() > 1) {
            read_modules(*options_.modules);
        }
        for (LabelledPass& pass : made_.passes) {
            if (trace_.facts.cut) {
                pass.certain = false;
                pass.doubts.emplace_back("the file is cut");
            }
        }
        sort_passes();
        made_.brick_of.reserve(labels_.size());
        made_.evidence_of.reserve(labels_.size());
        made_.certainty_of.reserve(labels_.size());
        for (std::size_t i = 0; i < labels_.size(); ++i) {
            const KernelLabel& label = known_[labels_[i]];
            made_.brick_of.push_back(brick_of(trace_.ops[i], labels_[i]));
            made_.evidence_of.push_back(label.evidence);
            made_.certainty_of.push_back(label.certainty);
        }
        return std::move(made_);
    }

  private:
    void place_all() {
        std::vector<OpsOfStep> stretches = stretches_of_steps();
        std::map<std::pair<std::uint16_t, std::uint64_t>, std::vector<OpsOfStep*>> graphs;
        for (OpsOfStep& stretch : stretches) {
            prepare(stretch);
            if (is_stopped()) {
                return;
            }
            if (stretch.replay != nullptr) {
                graphs[{stretch.process, stretch.replay->key}].push_back(&stretch);
            } else {
                find_in_passes(stretch);
            }
        }
        for (const auto& [key, replays] : graphs) {
            find_in_replays(replays);
        }
        for (const auto& [step, parts] : parted_) {
            std::vector<std::vector<LabelledPass>> passes;
            for (const auto& [device, of_device] : parts.passes) {
                passes.push_back(of_device);
            }
            const std::vector<LabelledPass> of_step = agreed(passes, parts.spread);
            made_.passes.insert(made_.passes.end(), of_step.begin(), of_step.end());
        }
    }

    void read_modules(const ModuleLabels& modules) {
        std::map<std::pair<std::uint16_t, std::uint32_t>, std::vector<std::uint32_t>> steps;
        for (std::uint32_t i = 0; i < labels_.size(); ++i) {
            if (const ModuleRule* rule = modules.labels[modules.of_op[i]].rule; rule != nullptr) {
                KernelLabel label = known_[labels_[i]];
                apply(*rule, modules.evidence_of[i], label);
                labels_[i] = known_.id(label);
            }
            if (steps_.of_op[i] != no_step) {
                steps[{trace_.ops[i].process, steps_.of_op[i]}].push_back(i);
            }
        }
        for (const auto& [step, ops] : steps) {
            read_layers(modules, step, ops);
        }
    }

    /// Modules that are compiled, or that launch a graph, hide what is inside them: then places are what is known.
    void read_layers(const ModuleLabels& modules, std::pair<std::uint16_t, std::uint32_t> step,
                     const std::vector<std::uint32_t>& ops) {
        std::map<std::uint32_t, std::uint32_t> numbers; // of modules that are layers
        std::map<LabelEvidence, std::size_t> by_evidence;
        std::size_t placed = 0;
        bool one_kind = true;
        for (const std::uint32_t op : ops) {
            placed += made_.layer_of[op] != 0 ? 1 : 0;
            if (const std::uint32_t layer = layer_module(modules, op); layer != ModuleLabel::none) {
                ++by_evidence[modules.evidence_of[op]];
                one_kind = one_kind && modules.layers[layer].kind ==
                                           modules.layers[numbers.empty() ? layer : numbers.begin()->first].kind;
                numbers.try_emplace(layer, static_cast<std::uint32_t>(numbers.size()));
            }
        }
        std::size_t told = 0;
        for (const auto& [evidence, count] : by_evidence) {
            told += count;
        }
        if (told == 0 || 2 * told < placed) {
            return;
        }
        const LabelEvidence evidence =
            std::max_element(by_evidence.begin(), by_evidence.end(), [](const auto& a, const auto& b) {
                return a.second < b.second;
            })->first;
        for (auto& [layer, number] : numbers) { // those of several kinds are counted as they come
            number = one_kind ? modules.layers[layer].number : number;
        }
        std::map<std::uint32_t, std::vector<std::uint32_t>> by_device; // of a step that is parted
        for (const std::uint32_t op : ops) {
            by_device[parted_.contains(step) ? device_of(op) : 0].push_back(op);
        }
        for (const auto& [device, of_device] : by_device) {
            number_layers(modules, of_device, numbers);
        }
        const auto known = passes_found_of(step);
        for (LabelledPass& pass : known) {
            tell(pass, numbers.size(), evidence);
        }
        if (known.empty()) {
            LabelledPass& pass = made_.passes.emplace_back();
            std::tie(pass.process, pass.step) = step;
            tell(pass, numbers.size(), evidence);
        }
    }

    /// Of those that are known by kernels: they stand first, in order.
    std::span<LabelledPass> passes_found_of(std::pair<std::uint16_t, std::uint32_t> step) {
        const auto end = made_.passes.begin() + static_cast<std::ptrdiff_t>(passes_found_);
        const auto first =
            std::lower_bound(made_.passes.begin(), end, step, [](const LabelledPass& pass, const auto& wanted) {
                return std::pair(pass.process, pass.step) < wanted;
            });
        const auto last = std::find_if(
            first, end, [&step](const LabelledPass& pass) { return std::pair(pass.process, pass.step) != step; });
        return {first, last};
    }

    void sort_passes() {
        std::stable_sort(made_.passes.begin(), made_.passes.end(), [](const LabelledPass& a, const LabelledPass& b) {
            return std::pair(a.process, a.step) < std::pair(b.process, b.step);
        });
    }

    static std::uint32_t layer_module(const ModuleLabels& modules, std::uint32_t op) {
        return modules.labels[modules.of_op[op]].layer;
    }

    /// Operations of no module are in a layer where those before and behind them are in the same.
    void number_layers(const ModuleLabels& modules, const std::vector<std::uint32_t>& ops,
                       const std::map<std::uint32_t, std::uint32_t>& numbers) {
        std::uint16_t last = 0;
        std::vector<std::uint32_t> between;
        for (const std::uint32_t op : ops) {
            made_.layer_of[op] = 0;
            if (modules.of_op[op] == 0) {
                between.push_back(op);
                continue;
            }
            const auto found = numbers.find(layer_module(modules, op));
            const std::uint16_t layer = found != numbers.end() && found->second < most_layers
                                            ? static_cast<std::uint16_t>(found->second + 1)
                                            : 0;
            for (const std::uint32_t other : between) {
                made_.layer_of[other] = layer == last ? layer : 0;
            }
            between.clear();
            made_.layer_of[op] = last = layer;
        }
    }

    void tell(LabelledPass& pass, std::size_t layers, LabelEvidence evidence) const {
        pass.layers = static_cast<std::uint32_t>(layers);
        pass.told = evidence;
        pass.doubts.clear();
        if (options_.layers != 0 && options_.layers != pass.layers) {
            pass.doubts.push_back("the model has " + std::to_string(options_.layers) + " layers, modules tell of " +
                                  std::to_string(pass.layers));
        }
        pass.certain = pass.doubts.empty();
    }

    /// What belongs to no step has no layers, but bricks.
    std::vector<OpsOfStep> stretches_of_steps() {
        std::map<StepKey, std::vector<std::uint32_t>> by_step;
        auto last = by_step.end(); // most operations are of the step of the one before
        for (std::uint32_t i = 0; i < trace_.ops.size(); ++i) {
            const std::pair key(trace_.ops[i].process, steps_.of_op[i]);
            if (last == by_step.end() || last->first != key) {
                last = by_step.try_emplace(key).first;
            }
            last->second.push_back(i);
        }
        std::vector<OpsOfStep> stretches;
        std::map<StepKey, std::size_t> first_of; // of each step, in stretches
        for (auto& [key, ops] : by_step) {
            first_of.emplace(key, stretches.size());
            DeviceParts parts =
                device_parts(trace_, std::move(ops), [this](std::uint32_t op) { return known_[labels_[op]].anchor; });
            for (std::vector<std::uint32_t>& of_part : parts.ops) {
                OpsOfStep& stretch = stretches.emplace_back();
                std::tie(stretch.process, stretch.step) = key;
                if (parts.ops.size() > 1) {
                    stretch.device = device_of(of_part.front());
                    parted_[key].spread = parts.spread;
                }
                stretch.ops = std::move(of_part);
            }
        }
        for (const Replay& replay : steps_.replays) {
            const StepKey key(replay.process, replay.step);
            const auto found = replay.step != no_step ? first_of.find(key) : first_of.end();
            for (std::size_t i = found == first_of.end() ? stretches.size() : found->second;
                 i < stretches.size() && StepKey(stretches[i].process, stretches[i].step) == key; ++i) {
                if (2 * ops_in(replay, stretches[i]) > stretches[i].ops.size()) {
                    stretches[i].replay = &replay;
                }
            }
        }
        return stretches;
    }

    [[nodiscard]] std::uint32_t device_of(std::uint32_t op) const {
        return trace_.streams[trace_.ops[op].stream].device;
    }

    [[nodiscard]] std::size_t ops_in(const Replay& replay, const OpsOfStep& stretch) const {
        return !stretch.device ? replay.ops.size()
                               : static_cast<std::size_t>(
                                     std::count_if(replay.ops.begin(), replay.ops.end(),
                                                   [&](std::uint32_t op) { return device_of(op) == *stretch.device; }));
    }

    /// What neighbours say.
    void prepare(OpsOfStep& stretch) {
        std::vector<std::size_t> main = main_stream(kernels_of(stretch.ops));
        if (neighbours_.main == nullptr || main != *neighbours_.main) { // most are as the one before
            neighbours_.main = std::make_shared<const std::vector<std::size_t>>(std::move(main));
        }
        stretch.main = neighbours_.main;
        std::vector<LabelId> pass = labels_of(stretch);
        if (pass != neighbours_.pass) {
            std::vector<KernelLabel> labels = labels_with(pass);
            read_neighbours(labels);
            neighbours_.pass = std::move(pass);
            neighbours_.labels = ids_of(labels);
        }
        set_labels(stretch, neighbours_.labels);
    }

    /// Of the main stream.
    void set_labels(const OpsOfStep& stretch, const std::vector<LabelId>& labels) {
        for (std::size_t n = 0; n < labels.size(); ++n) {
            labels_[stretch.ops[(*stretch.main)[n]]] = labels[n];
        }
    }
    [[nodiscard]] std::vector<LabelId> labels_of(const OpsOfStep& stretch) const {
        std::vector<LabelId> ids;
        ids.reserve(stretch.main->size());
        for (const std::size_t i : *stretch.main) {
            ids.push_back(labels_[stretch.ops[i]]);
        }
        return ids;
    }
    [[nodiscard]] std::vector<KernelLabel> labels_with(const std::vector<LabelId>& ids) const {
        std::vector<KernelLabel> labels;
        labels.reserve(ids.size());
        for (const LabelId id : ids) {
            labels.push_back(known_[id]);
        }
        return labels;
    }
    std::vector<LabelId> ids_of(const std::vector<KernelLabel>& labels) {
        std::vector<LabelId> ids;
        ids.reserve(labels.size());
        for (const KernelLabel& label : labels) {
            ids.push_back(known_.id(label));
        }
        return ids;
    }

    static LayerAnchor anchor_of(const KernelLabel& label) {
        static_assert(static_cast<int>(Anchor::sampling) == static_cast<int>(LayerAnchor::sampling));
        return static_cast<LayerAnchor>(label.anchor);
    }

    [[nodiscard]] std::vector<SequenceKernel> kernels_of(const std::vector<std::uint32_t>& ops) const {
        std::vector<SequenceKernel> kernels;
        kernels.reserve(ops.size());
        for (const std::uint32_t index : ops) {
            const DeviceOp& op = trace_.ops[index];
            kernels.push_back({op.name, op.stream, anchor_of(known_[labels_[index]]), op.start_ns, op.end_ns,
                               trace_.launch_number(index)});
        }
        return kernels;
    }

    [[nodiscard]] DetectionOptions layer_options() const {
        DetectionOptions options;
        options.layers = options_.layers;
        options.stop = options_.stop;
        return options;
    }

    [[nodiscard]] bool is_stopped() const {
        return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
    }

    void find_in_passes(OpsOfStep& stretch) {
        const std::vector<SequenceKernel> all = kernels_of(stretch.ops);
        std::vector<KernelPlace> places(stretch.ops.size());
        for (const PassRange& range : find_passes(all, options_.stop)) {
            const auto kernels = std::span(all).subspan(range.begin, range.end - range.begin);
            const LayerFindings findings = find_layers(kernels, layer_options());
            std::copy(findings.places.begin(), findings.places.end(),
                      places.begin() + static_cast<std::ptrdiff_t>(range.begin));
            keep(stretch, findings);
            std::vector<std::size_t> main = main_stream(kernels);
            for (std::size_t& i : main) {
                i += range.begin;
            }
            stretch.main = std::make_shared<const std::vector<std::size_t>>(std::move(main));
            read(stretch, places, range.begin, range.end);
        }
    }

    /// Replays of one graph are witnesses of each other. What the step holds beside its replay is in no layer.
    void find_in_replays(const std::vector<OpsOfStep*>& replays) {
        const auto is_inside = [this](const OpsOfStep& stretch, std::uint32_t op) {
            return trace_.ops[op].correlation == stretch.replay->correlation;
        };
        const auto kernels = [&](std::size_t r) {
            std::vector<std::uint32_t> inside = replays[r]->ops;
            std::erase_if(inside, [&](std::uint32_t op) { return !is_inside(*replays[r], op); });
            return kernels_of(inside);
        };
        const std::vector<LayerFindings> found = find_layers(replays.size(), kernels, layer_options());
        places_ = {};
        for (std::size_t r = 0; r < replays.size(); ++r) {
            const OpsOfStep& stretch = *replays[r];
            keep(stretch, found[r]);
            const std::vector<KernelPlace>& inside = found[found[r].like.value_or(r)].places;
            if (inside.size() == stretch.ops.size()) {
                read(stretch, inside, 0, inside.size());
                continue;
            }
            std::vector<KernelPlace> places(stretch.ops.size());
            auto next = inside.begin();
            for (std::size_t i = 0; i < places.size(); ++i) {
                if (is_inside(stretch, stretch.ops[i])) {
                    places[i] = *next++;
                }
            }
            read(stretch, places, 0, places.size());
        }
    }

    void keep(const OpsOfStep& stretch, const LayerFindings& findings) {
        if (stretch.step != no_step && findings.layers != 0) {
            std::vector<LabelledPass>& passes =
                stretch.device ? parted_[StepKey(stretch.process, stretch.step)].passes[*stretch.device] : made_.passes;
            LabelledPass& pass = passes.emplace_back();
            pass.process = stretch.process;
            pass.step = stretch.step;
            pass.layers = findings.layers;
            pass.witnesses = findings.witnesses;
            pass.certain = findings.certain;
            pass.doubts = findings.doubts;
        }
    }

    /// What places say of the pass from `begin` to `end`. Replays of one graph that are alike have the same labels, as the first of
    /// them.
    void read(const OpsOfStep& stretch, const std::vector<KernelPlace>& places, std::size_t begin, std::size_t end) {
        const auto same_place = [](const KernelPlace& a, const KernelPlace& b) {
            return a.layer == b.layer && (!a.layer || (a.unit == b.unit && a.slot == b.slot));
        };
        std::vector<LabelId> pass = labels_of(stretch);
        std::vector<KernelPlace> of_main;
        of_main.reserve(pass.size());
        for (const std::size_t i : *stretch.main) {
            of_main.push_back(places[i]);
        }
        if (stretch.replay == nullptr || pass != places_.pass ||
            !std::equal(of_main.begin(), of_main.end(), places_.places.begin(), places_.places.end(), same_place)) {
            std::vector<KernelLabel> labels = labels_with(pass);
            std::vector<PlaceInLayer> in_layers;
            in_layers.reserve(pass.size());
            for (const std::size_t i : *stretch.main) {
                in_layers.push_back(place_of(places[i], trace_.ops[stretch.ops[i]]));
            }
            read_places(labels, in_layers);
            places_ = {nullptr, std::move(pass), std::move(of_main), ids_of(labels)};
        }
        set_labels(stretch, places_.labels);
        for (std::size_t i = begin; i < end && stretch.step != no_step; ++i) {
            const std::optional<std::uint32_t> layer = places[i].layer;
            made_.layer_of[stretch.ops[i]] = layer && *layer < most_layers ? static_cast<std::uint16_t>(*layer + 1) : 0;
        }
    }

    static PlaceInLayer place_of(const KernelPlace& place, const DeviceOp& op) {
        if (!place.layer) {
            return {.ns = op.duration_ns()};
        }
        return {*place.layer, place.unit, place.slot.value_or(PlaceInLayer::none), op.duration_ns()};
    }

    std::uint32_t brick_of(const DeviceOp& op, LabelId label) {
        if (op.kind == DeviceOpKind::graph) {
            return brick("graph");
        }
        const bool known = known_[label].certainty != Certainty::unknown;
        const auto [found, is_new] = (known ? brick_of_label_ : unknown_).try_emplace(known ? label : op.name, 0);
        if (is_new) {
            found->second = known ? brick(known_[label].brick) : brick(short_name(trace_.names[op.name]));
        }
        return found->second;
    }

    std::uint32_t brick(std::string_view name) {
        auto found = bricks_.find(name);
        if (found == bricks_.end()) {
            if (bricks_.size() >= most_bricks && name != rest) {
                return brick(rest);
            }
            found = bricks_.emplace(name, static_cast<std::uint32_t>(made_.bricks.size())).first;
            made_.bricks.push_back(brick_named(std::string(name)));
        }
        return found->second;
    }

    static constexpr std::string_view rest = "other_kernels";

    using StepKey = std::pair<std::uint16_t, std::uint32_t>; // process, step
    struct PassesOfParts {
        std::map<std::uint32_t, std::vector<LabelledPass>> passes; // by device
        bool spread = false;
    };

    struct ReadBefore {
        std::shared_ptr<const std::vector<std::size_t>> main;
        std::vector<LabelId> pass; // as it was
        std::vector<KernelPlace> places;
        std::vector<LabelId> labels; // as it is then
    };

    const Trace& trace_;
    const EngineSteps& steps_;
    const LabelOptions& options_;
    KnownLabels known_;
    NameLabels names_;
    std::vector<LabelId> labels_;             // of each op
    std::size_t passes_found_ = 0;            // by kernels, at the front of made_.passes
    std::map<StepKey, PassesOfParts> parted_; // steps whose devices run side by side
    ReadBefore neighbours_;                   // the pass before
    ReadBefore places_;                       // the replay before, of the same graph
    std::map<std::string, std::uint32_t, std::less<>> bricks_;
    std::unordered_map<std::uint32_t, std::uint32_t> brick_of_label_;
    std::unordered_map<std::uint32_t, std::uint32_t> unknown_; // by name
    Labels made_;
};

} // namespace

std::vector<bool> attention_names(const Trace& trace, KernelRules& rules) {
    std::vector<bool> found(trace.names.size(), false);
    std::vector<bool> seen(trace.names.size(), false);
    for (const DeviceOp& op : trace.ops) {
        if (!seen[op.name] && op.kind == DeviceOpKind::kernel) {
            seen[op.name] = true;
            found[op.name] = rules.label(trace.names[op.name]).anchor == Anchor::attention;
        }
    }
    return found;
}

Labels label_operations(const Trace& trace, const EngineSteps& steps, KernelRules& rules, const LabelOptions& options) {
    return Labeller(trace, steps, rules, options).label();
}

} // namespace plumb::imported
