// SPDX-License-Identifier: Apache-2.0
#include "import/rules/node_naming.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "import/rules/brick_name.hpp"
#include "import/rules/kernel_place.hpp"
#include "layers/layers.hpp"

namespace plumb::imported {
namespace {

using recording::CapturedWork;
using recording::NodeToName;

constexpr std::size_t longest_mangled = 4096; // a longer name is read as it is

std::string demangled(std::string_view name) {
    if (!name.starts_with("_Z") || name.size() > longest_mangled) {
        return std::string(name);
    }
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
    return text != nullptr ? std::string(text.get()) : std::string(name);
}

/// What one name says, once for all nodes that have it.
struct KnownName {
    std::uint32_t number = 0;
    KernelLabel label;
    std::string brick; // where no rule knows it
};

class NodeNamer {
  public:
    NodeNamer(const std::vector<NodeToName>& nodes, KernelRules& rules) : nodes_(nodes), rules_(rules) {}

    recording::NodeNames name() {
        for (const NodeToName& node : nodes_) {
            known_.push_back(&read(node));
            labels_.push_back(known_.back()->label);
        }
        made_.layer_of.resize(nodes_.size());
        place();
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            const KernelLabel& label = labels_[i];
            const bool unknown = label.certainty == Certainty::unknown;
            made_.brick_of.push_back(brick(unknown ? known_[i]->brick : std::string(label.brick)));
            ++(unknown ? made_.unknown : label.evidence == LabelEvidence::place ? made_.by_place : made_.by_name);
        }
        return std::move(made_);
    }

  private:
    const KnownName& read(const NodeToName& node) {
        const auto [found, is_new] = names_.try_emplace({node.name, node.work});
        if (is_new) {
            KnownName& name = found->second;
            name.number = static_cast<std::uint32_t>(names_.size());
            if (node.work == CapturedWork::kernel) {
                const std::string text = demangled(node.name);
                name.label = rules_.label(text);
                name.brick = short_name(text);
            } else if (node.work == CapturedWork::copy) {
                name.label = {"copy", {}, Certainty::strong, Anchor::none, LabelEvidence::name};
            } else {
                name.label = rules_.label("Memset");
                name.brick = "fill";
            }
        }
        return found->second;
    }

    [[nodiscard]] std::vector<SequenceKernel> kernels() const {
        std::vector<SequenceKernel> kernels;
        kernels.reserve(nodes_.size());
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            SequenceKernel kernel;
            kernel.name = known_[i]->number;
            kernel.stream = nodes_[i].lane;
            kernel.anchor = static_cast<LayerAnchor>(labels_[i].anchor);
            kernels.push_back(kernel);
        }
        return kernels;
    }

    /// What neighbours and layers say of the main lane, as of the main stream of a replay.
    void place() {
        const std::vector<std::size_t> main = main_stream(kernels());
        std::vector<KernelLabel> pass = of(main);
        read_neighbours(pass);
        put(main, pass);
        DetectionOptions options;
        options.complete = true;
        LayerFindings findings = find_layers(kernels(), options);
        std::vector<PlaceInLayer> places;
        places.reserve(main.size());
        for (const std::size_t i : main) {
            const KernelPlace& place = findings.places[i];
            places.push_back(place.layer
                                 ? PlaceInLayer{*place.layer, place.unit, place.slot.value_or(PlaceInLayer::none), 0}
                                 : PlaceInLayer{});
        }
        read_places(pass, places);
        put(main, pass);
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            made_.layer_of[i] = findings.places[i].layer;
        }
        made_.layers = findings.layers;
        made_.doubts = std::move(findings.doubts);
    }

    [[nodiscard]] std::vector<KernelLabel> of(const std::vector<std::size_t>& main) const {
        std::vector<KernelLabel> pass;
        pass.reserve(main.size());
        for (const std::size_t i : main) {
            pass.push_back(labels_[i]);
        }
        return pass;
    }
    void put(const std::vector<std::size_t>& main, const std::vector<KernelLabel>& pass) {
        for (std::size_t n = 0; n < main.size(); ++n) {
            labels_[main[n]] = pass[n];
        }
    }

    std::uint32_t brick(std::string name) {
        const auto [found, is_new] = bricks_.try_emplace(name, static_cast<std::uint32_t>(made_.bricks.size()));
        if (is_new) {
            const BrickName named = brick_named(std::move(name));
            made_.bricks.push_back({named.name, named.category});
        }
        return found->second;
    }

    const std::vector<NodeToName>& nodes_;
    KernelRules& rules_;
    std::map<std::pair<std::string_view, CapturedWork>, KnownName> names_;
    std::vector<const KnownName*> known_; // of each node
    std::vector<KernelLabel> labels_;     // of each node
    std::map<std::string, std::uint32_t> bricks_;
    recording::NodeNames made_;
};

} // namespace

recording::NodeNames name_nodes(const std::vector<NodeToName>& nodes, KernelRules& rules) {
    return NodeNamer(nodes, rules).name();
}

recording::NodeNames name_nodes(const std::vector<NodeToName>& nodes) {
    // Never destroyed: a thread may capture while the process exits.
    struct Shared {
        std::mutex mutex;
        Result<KernelRules> rules = KernelRules::load({});
    };
    static Shared& shared = *new Shared;
    const std::lock_guard lock(shared.mutex);
    if (!shared.rules) {
        recording::NodeNames none;
        none.doubts.push_back(shared.rules.error().message);
        return none;
    }
    return name_nodes(nodes, *shared.rules);
}

} // namespace plumb::imported
