// SPDX-License-Identifier: Apache-2.0
// The one way in which a place changes a label. Safe from any thread.
#pragma once

#include "import/rules/kernel_label.hpp"

namespace plumb::imported {

/// `brick` is a literal.
inline void place(KernelLabel& label, std::string_view brick, Certainty certainty = Certainty::strong) {
    label = {brick, {}, certainty, anchor_of(brick), LabelEvidence::place};
}

} // namespace plumb::imported
