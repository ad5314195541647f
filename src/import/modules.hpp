// SPDX-License-Identifier: Apache-2.0
// In which module of the model each operation was launched: by module stacks, by ranges that are named after modules, by labels on
// kernels of captured graphs, and by the trace of a graph's capture. Plain data; owned by whoever holds the value; the functions are
// pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "import/rules/module_rules.hpp"
#include "import/steps.hpp"
#include "import/trace.hpp"

namespace plumb::imported {

/// What the modules that were open say.
struct ModuleLabel {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t layer = none; // in ModuleLabels::layers
    const ModuleRule* rule = nullptr;
};

struct LayerModule {
    std::string kind;
    std::uint32_t number = 0;
};

struct ModuleLabels {
    std::vector<ModuleLabel> labels;        // the first: no module was open
    std::vector<std::uint32_t> of_op;       // of each op: its label
    std::vector<LabelEvidence> evidence_of; // of each op; none: no module was open
    std::vector<LayerModule> layers;
    std::vector<std::string> notes; // on captures
    std::uint64_t captured = 0;     // replays that hold the kernels of a capture
};

struct ModuleOptions {
    bool stacks = true, annotations = true; // may be used
    std::vector<const Trace*> captures;     // each the trace of one or more captures of graphs
};

/// Whether the capture of a graph begins in it.
[[nodiscard]] bool holds_capture(const Trace& trace);

[[nodiscard]] ModuleLabels find_modules(const Trace& trace, const EngineSteps& steps,
                                        const ModuleOptions& options = {});

} // namespace plumb::imported
