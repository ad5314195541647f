// SPDX-License-Identifier: Apache-2.0
// What each operation of a trace is: its brick, its layer within the step, and by what that is known. Plain data; owned by whoever
// holds the value.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "import/modules.hpp"
#include "import/rules/brick_name.hpp"
#include "import/rules/kernel_label.hpp"
#include "import/rules/kernel_rules.hpp"
#include "import/steps.hpp"
#include "import/trace.hpp"
#include "layers/layers.hpp"
#include "plumb/bricks.hpp"

namespace plumb::imported {

/// One pass through the model, and what its layers are known by.
struct LabelledPass {
    std::uint16_t process = 0;
    std::uint32_t step = no_step;
    std::uint32_t layers = 0;
    LayerWitnesses witnesses;
    bool certain = false;
    LabelEvidence told = LabelEvidence::none; // by modules; none: by the witnesses
    std::vector<std::string> doubts;
};

struct Labels {
    std::vector<BrickName> bricks;
    std::vector<std::uint32_t> brick_of;    // of each op: index in bricks
    std::vector<std::uint16_t> layer_of;    // of each op: layer + 1; 0: outside of layers
    std::vector<LabelEvidence> evidence_of; // of each op: of its brick
    std::vector<Certainty> certainty_of;    // of each op: of its brick
    std::vector<LabelledPass> passes;       // in which a layer was found, by process and begin
};

struct LabelOptions {
    bool names = true;                       // may be used
    bool places = true;                      // may be used
    std::uint32_t layers = 0;                // what the model has; 0: not known
    const ModuleLabels* modules = nullptr;   // win where they say something
    const std::atomic<bool>* stop = nullptr; // set: what is found then says nothing
};

/// By name: whether its rule says attention.
[[nodiscard]] std::vector<bool> attention_names(const Trace& trace, KernelRules& rules);

[[nodiscard]] Labels label_operations(const Trace& trace, const EngineSteps& steps, KernelRules& rules,
                                      const LabelOptions& options = {});

} // namespace plumb::imported
