// SPDX-License-Identifier: Apache-2.0
// Which tensors of two runs are the same one. By phase, sequence, pass, layer, brick, role and occurrence, and then by the
// position of the tokens where both know it, else by the ordinal of the step. Prefill that was cut differently: pieces
// are gathered up to borders that both have. Occurrences are never merged. Pure functions; no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "numerics/checked_run.hpp"

namespace plumb::numerics {

/// The same tensor in both: several pieces where it was cut. Indexes into CheckedRun::checks.
struct PairedTensor {
    std::vector<std::uint32_t> a, b;
};

/// Why a tensor has no counterpart.
enum class Lack : std::uint8_t {
    tensor,   // the other run has the step, not the tensor
    step,     // it lacks the whole step
    sequence, // it lacks the whole sequence: no failure while another is common
    chunking, // the last rows of a chunk, where the other run has no border: no failure
};
struct Unpaired {
    bool of_a = true;
    std::uint32_t check = 0;
    Lack lack = Lack::tensor;
};

struct Pairing {
    std::vector<PairedTensor> pairs; // in the order in which the first run executed
    std::vector<Unpaired> unpaired;
    bool by_position = true; // false: some sequence's positions are not known
};

[[nodiscard]] Pairing pair_runs(const CheckedRun& a, const CheckedRun& b);

} // namespace plumb::numerics
