// SPDX-License-Identifier: Apache-2.0
// Whether two tensors agree. Pure functions; any thread.
#pragma once

#include <vector>

#include "numerics/checked_run.hpp"
#include "numerics/diverge.hpp"
#include "recording/recording.hpp"

namespace plumb::numerics {

/// One tensor of one run, put together from its pieces.
struct WholeTensor {
    recording::TensorCheck check; // of the first piece, its fingerprint and shape of all; argmax and margin of the last
    bool hash_known = true; // false: pieces meet inside a row of the definition, so that their hashes cannot be joined
    bool joins = true;      // false: the pieces are not of one tensor
    bool numbered = true;   // false: the pieces are not numbered one after the other: hash and sketch say nothing
};
/// REQUIRES: at least one piece.
[[nodiscard]] WholeTensor whole_of(const CheckedRun& run, const std::vector<std::uint32_t>& pieces);

struct Tolerance {
    double floating = 0;
    std::optional<DType> of; // set it
    bool given = false;      // by the options
    bool exact = false;
};
/// The coarsest floating element type of both runs sets the tolerance, unless the options do: what was computed from
/// bf16 carries the noise of bf16, whatever type it is kept in.
[[nodiscard]] Tolerance tolerance_for(const CheckedRun& a, const CheckedRun& b, const DivergeOptions& options);

struct TensorVerdict {
    Difference difference = Difference::none;
    Distance distance;
    bool identical = false;    // bit for bit
    bool weak = false;         // only the largest values were compared: of tensors=nonfinite
    bool hash_unknown = false; // exactness was asked for, and judged by distance
    bool unnumbered = false;   // elements are numbered otherwise: only extremes and norms were compared
};
[[nodiscard]] TensorVerdict judge(const WholeTensor& a, const WholeTensor& b, const Tolerance& tolerance);

/// Whether (difference, distance) of x is worse than that of y: what differs before what does not, NaN and Inf first. A NaN
/// distance is worse than any number.
[[nodiscard]] bool worse(Difference x, const Distance& distance_x, Difference y, const Distance& distance_y) noexcept;

} // namespace plumb::numerics
