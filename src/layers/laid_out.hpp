// SPDX-License-Identifier: Apache-2.0
// A pass laid out along its units, before layers have numbers: what labelling, grading and the cut into passes share.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "layers/layers.hpp"
#include "layers/repeats.hpp"

namespace plumb {

constexpr std::size_t edge_slots = 3; // of a copy at either end: swaps at its border leave these without their kernel

struct LaidOut {
    std::vector<std::size_t>
        main; // kernels of the stream that holds the layers; positions of copies are indices of this
    Repeats repeats;
    std::vector<std::uint32_t> attentions; // of each unit
    std::vector<std::uint32_t> names;      // of the symbols in units, as the caller knows them
    std::vector<std::size_t> unclear;      // positions between two copies that may belong to either
    bool anchored = false;                 // every unit holds attention; else none is known
};

/// Copies that are cut short and hold no more than norms are none: the norm after the last layer looks like a layer's.
[[nodiscard]] LaidOut lay_out(std::span<const SequenceKernel> kernels, const std::atomic<bool>* stop);

/// Attention kernels as layers have them: those of one attention count once, as no two norms, GEMMs or MLP kernels part them.
[[nodiscard]] std::uint32_t count_attentions(std::span<const LayerAnchor> anchors);

/// Fills witnesses and doubts of findings whose places, units and layers are there: all that times and launches do not tell.
void grade_order(std::span<const SequenceKernel> pass, const LaidOut& laid_out, const DetectionOptions& options,
                 LayerFindings& findings);

/// Then the rest of them, and certain. Needs no places.
void grade_times(std::span<const SequenceKernel> pass, const LaidOut& laid_out, const DetectionOptions& options,
                 LayerFindings& findings);

} // namespace plumb
