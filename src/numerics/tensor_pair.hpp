// SPDX-License-Identifier: Apache-2.0
// A checked tensor (plumb/tensor.hpp), the same one in another run, and how the two differ: what diverge and health say things of.
// Plain values; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/layout.hpp"
#include "plumb/bricks.hpp"
#include "plumb/fingerprint.hpp"
#include "plumb/tensor.hpp"

namespace plumb {

/// The relative L2 distance that counts as the same, where nobody says otherwise. Integers must agree exactly.
constexpr double default_tolerance(DType type) noexcept {
    constexpr double tolerances[dtype_count] = {1e-4, 1e-9, 4e-3, 2e-2, 0, 0};
    return tolerances[static_cast<std::size_t>(type)];
}

/// Where a tensor belongs in its run.
struct TensorPlace {
    std::optional<std::uint64_t> step; // of the first run
    std::optional<std::uint64_t> step_b;
    Phase phase = Phase::none;
    std::uint32_t sequence = 0;
    std::optional<std::int64_t> position; // of its first row, in the sequence
    std::uint64_t rows = 0;
    std::optional<std::uint32_t> layer;
    std::string brick;
    TensorRole role = TensorRole::output;
    std::uint32_t occurrence = 0; // among those of the same step, layer, brick and role
};

/// How two tensors differ. Values are ordered: what comes later is worse.
enum class Difference : std::uint8_t {
    none,
    token,     // the logits agree, but the largest is another
    bits,      // not bit for bit the same, where that was asked for, or integers
    value,     // further apart than the tolerance
    shape,     // not so many elements
    empty,     // no element at all, in one or both
    nonfinite, // not as many NaN, +Inf and -Inf in both
};
inline constexpr std::size_t difference_count = 7;
/// "value", …
constexpr const char* difference_word(Difference difference) noexcept {
    constexpr const char* words[difference_count] = {"none", "token", "bits", "value", "shape", "empty", "nonfinite"};
    return words[static_cast<std::size_t>(difference)];
}

/// What one fingerprint says that a reader wants to see.
struct TensorFacts {
    DType dtype = DType::f32;
    std::uint64_t count = 0, nans = 0, positive_infs = 0, negative_infs = 0;
    std::uint64_t first_nonfinite = no_index;
    double largest = std::numeric_limits<double>::quiet_NaN(); // |x|; NaN: nothing is finite
};

struct TensorPair {
    TensorPlace place;
    TensorFacts a, b;
    Difference difference = Difference::none;
    Distance distance; // infinite where they cannot be near
};

/// Whether what went into a divergent operation agrees.
enum class InputState : std::uint8_t {
    not_recorded,
    agree,    // so it is the operation itself
    disagree, // handed down: something before it, that is not checked
};

} // namespace plumb
