// SPDX-License-Identifier: Apache-2.0
// Where in a tensor something is: the first element that is not finite, or that has a given magnitude.
// Pure functions; any thread.
#pragma once

#include <cstdint>

#include "fingerprint/elements.hpp"
#include "fingerprint/kernels.hpp"

namespace plumb::fingerprint {

/// What bits to look for, as kernels.hpp's Find takes them.
struct Pattern {
    std::uint64_t mask = 0;
    std::uint64_t one = 0;
    std::uint64_t other = 0;
};

/// REQUIRES: a type of floats.
Pattern nonfinite_pattern(DType type) noexcept;
/// |x| == magnitude. REQUIRES: some x of the type has it.
Pattern magnitude_pattern(DType type, double magnitude) noexcept;

constexpr bool has_nonfinite(DType type) noexcept { return type != DType::i8 && type != DType::i32; }

/// First of the elements begin .. end - 1 that fits; `end`: none.
std::size_t find_first(const Elements& elements, DType type, std::size_t begin, std::size_t end, const Pattern& pattern,
                       const Kernels& kernels) noexcept;

} // namespace plumb::fingerprint
