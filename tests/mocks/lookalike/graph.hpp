// SPDX-License-Identifier: Apache-2.0
// A graph, which only this engine's own libraries look into.
#pragma once

#include <vector>

#include "lookalike/truth.hpp"

struct ggml_cgraph {
    std::vector<ggml_tensor*> nodes;
    lookalike::Step* step = nullptr; // where what runs is noted
};
