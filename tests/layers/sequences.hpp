// SPDX-License-Identifier: Apache-2.0
// Kernel sequences whose layers are known: planted ones (planted.cpp), those that export_sequences.py took from traces, and what
// noise makes of them.
#pragma once

#include <istream>
#include <random>
#include <string>
#include <vector>

#include "layers/layers.hpp"

namespace plumb {

constexpr std::int32_t in_no_layer = -1, layer_unknown = -2;

/// Where a kernel stands. Noise may leave two answers, of which either is right.
struct TrueLayer {
    std::int32_t layer = layer_unknown, other = layer;
};

struct TruthSequence {
    std::string name;
    std::uint32_t layers = 0;
    bool ambiguous = false; // names and times say less than the number of layers
    std::vector<SequenceKernel> kernels;
    std::vector<TrueLayer> truth; // of each kernel
};

std::vector<TruthSequence> read_sequences(std::istream& in);
std::vector<TruthSequence> planted_sequences();
/// Several passes; the truth of a kernel is its pass.
TruthSequence planted_passes();

enum class Noise : std::uint8_t { none, drop, insert, swap, rename, lost_buffer };

/// A copy with noise. Every kernel that still stands keeps its layer, by whatever name. If two kernels change places over the border
/// of a layer, the border itself is no longer known: each may be in either layer. An inserted kernel is where one of its neighbours
/// is.
TruthSequence with_noise(const TruthSequence& sequence, Noise noise, std::mt19937& random);

/// Whether this kernel, and every kernel whose layer is known, was found where it stands.
bool is_right(const LayerFindings& findings, const TruthSequence& sequence, std::size_t kernel);
bool is_right(const LayerFindings& findings, const TruthSequence& sequence);

} // namespace plumb
