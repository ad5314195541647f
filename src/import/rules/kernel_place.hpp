// SPDX-License-Identifier: Apache-2.0
// What the neighbours and the place in a layer say of kernels whose names do not: which GEMM is which projection, which norm is one
// of queries and keys, to what the pieces of an eager program belong. Pure functions on the kernels of one pass, in the order of
// its main stream; safe from any thread. Labels changed here have LabelEvidence::place.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "import/rules/kernel_label.hpp"

namespace plumb::imported {

/// Before layers are known: pieces of an eager norm become one norm; a softmax with its GEMMs becomes attention where no kernel
/// is named so; softmax and top-k in every layer become the router. The anchors are right afterwards.
void read_neighbours(std::vector<KernelLabel>& pass);

/// Where a kernel stands, by the search for layers.
struct PlaceInLayer {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t layer = none; // from 0
    std::uint32_t unit = none;  // which repeated unit the layer is one of
    std::uint32_t slot = none;  // in that unit
    std::int64_t ns = 0;        // how long it ran
};

/// With layers known; places are as many as labels. GEMMs get roles, the pieces of a layer their bricks, the kernels behind the last
/// layer lm_head and sampling; a slot that is known in most layers is known in all.
void read_places(std::vector<KernelLabel>& pass, const std::vector<PlaceInLayer>& places);

} // namespace plumb::imported
