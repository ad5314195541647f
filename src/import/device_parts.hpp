// SPDX-License-Identifier: Apache-2.0
// Operations of one step on several devices: whether they are one sequence or one for each device, and what all of them together
// say of the layers. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "import/labels.hpp"
#include "import/trace.hpp"

namespace plumb::imported {

struct DeviceParts {
    std::vector<std::vector<std::uint32_t>>
        ops;             // of each device, by its number; one for all where they are one sequence
    bool spread = false; // one device begins a pass and another ends it: none need hold all layers
};

/// Parts where devices run the model side by side. They are one sequence where devices take turns, as with layers spread over them,
/// and where one of them has all the attention. `anchor_of` an op.
[[nodiscard]] DeviceParts device_parts(const Trace& trace, std::vector<std::uint32_t> ops,
                                       const std::function<Anchor(std::uint32_t)>& anchor_of);

/// The passes of a step, from those that each of its devices has. Where devices tell of different layers, the number that most have,
/// uncertain.
[[nodiscard]] std::vector<LabelledPass> agreed(const std::vector<std::vector<LabelledPass>>& devices, bool spread);

} // namespace plumb::imported
