// SPDX-License-Identifier: Apache-2.0
// Where two runs part, and whether one run is sound: what the checks of tensors (plumb/tensor.hpp) in recordings say.
// Plain values, owned by the caller. Thread rule: every function from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
#include "plumb/fingerprint.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"
#include "plumb/tensor.hpp"

namespace plumb {

/// The relative L2 distance that counts as the same, where nobody says otherwise. Integers must agree exactly.
constexpr double default_tolerance(DType type) noexcept {
    constexpr double tolerances[dtype_count] = {1e-4, 1e-9, 4e-3, 2e-2, 0, 0};
    return tolerances[static_cast<std::size_t>(type)];
}

struct DivergeOptions {
    std::optional<double> tolerance; // relative L2 distance, of floating tensors; absent: by element type
    bool exact = false;              // all bits must agree
};

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
    shape,     // not so many elements, or numbered otherwise
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

struct FirstDivergence {
    TensorPair tensor;
    InputState inputs = InputState::not_recorded;
    std::vector<TensorPair> input_tensors;         // of that call
    std::optional<TensorPlace> preceded_by;        // the output checked last before it; they agree there
    std::optional<std::uint64_t> token_a, token_b; // Difference::token
};

/// The residual stream (else the last output) of a layer, at the first divergent step.
struct LayerDistance {
    std::uint32_t layer = 0;
    TensorPair tensor;
};

/// Logits whose largest value is that of another token.
struct TokenFlip {
    TensorPlace place;
    std::uint64_t token_a = 0, token_b = 0;
    double margin_a = 0, margin_b = 0; // of the largest to the second; NaN: not known
};

/// A tensor, or a step, that one run lacks.
struct MissingTensor {
    bool only_in_a = true;
    TensorPlace place;
};

struct MissingCount {
    std::uint64_t tensors = 0;      // in steps that both have
    std::uint64_t steps = 0;        // whole ones
    std::uint64_t step_tensors = 0; // in those
};

struct DivergeReport {
    std::string path_a, path_b;
    std::uint64_t tensors_a = 0, tensors_b = 0, steps_a = 0, steps_b = 0;
    std::uint64_t compared = 0;  // pairs
    std::uint64_t identical = 0; // of those, bit for bit
    std::uint64_t divergent = 0;
    bool exact = false;
    double tolerance = 0;              // of floating tensors
    std::optional<DType> tolerance_of; // the coarsest element type of both runs set it; absent: given
    std::optional<FirstDivergence> first;
    std::optional<TensorPair> worst;   // of the divergent ones, else of all
    std::vector<LayerDistance> layers; // by layer; empty where nothing diverges
    std::uint64_t flip_count = 0;
    std::vector<TokenFlip> flips; // the first ones
    MissingCount only_in_a, only_in_b;
    std::vector<MissingTensor> missing; // the first ones
    std::uint64_t chunking = 0;         // tensors that depend on how prefill was cut
    std::vector<std::string> notes;

    /// Nothing diverges, nothing is missing, and something was compared.
    [[nodiscard]] bool same() const noexcept {
        return compared != 0 && divergent == 0 && !first && only_in_a.tensors + only_in_a.steps == 0 &&
               only_in_b.tensors + only_in_b.steps == 0;
    }
};

/// Pairs the checks of two recordings and judges them. Error not_found when neither holds any.
PLUMB_API Result<DivergeReport> diverge_recordings(const std::string& path_a, const std::string& path_b,
                                                   const DivergeOptions& options = {});
/// The line of the answer begins "FIRST step S layer L brick NAME", "SAME" or "MISSING".
PLUMB_API std::string render_text(const DivergeReport& report, const TextOptions& options = {});
/// Schema plumb.diverge/1 (docs/report_schema.md).
PLUMB_API std::string render_json(const DivergeReport& report);

/// One layer over all steps. layer absent: tensors outside of layers.
struct LayerHealth {
    std::optional<std::uint32_t> layer;
    std::uint64_t tensors = 0;   // outputs and inputs looked at
    std::uint64_t nonfinite = 0; // of those, with NaN or Inf
    std::string brick;  // whose output the figures from rms to growth are of: the residual stream where checked
    Figure rms;         // sqrt(mean x^2) over its outputs
    Figure l2;          // mean over its outputs
    Figure growth;      // rms / rms of the layer before
    double largest = 0; // |x| in any tensor of the layer
    std::string largest_brick;
    Figure saturation; // share of the element type's range that |x| reached, at most; floating tensors
    std::string saturated_brick;
    // Against the twin, of the same outputs
    Figure relative_error; // L2, over all steps
    Figure cosine;         // the least
    Figure signal_to_noise_db;
};

struct FirstNonfinite {
    TensorPlace place;
    TensorFacts facts;
    InputState inputs = InputState::not_recorded; // agree: all finite; disagree: some are not
    std::vector<std::pair<TensorPlace, TensorFacts>> input_tensors;
};

struct HealthReport {
    std::string path, twin; // twin empty: none
    std::uint64_t tensors = 0, steps = 0;
    std::uint64_t nonfinite = 0; // tensors with NaN or Inf; by the run's own count where that is more
    std::string looked_at;       // what the run says it looked at: "1,234 tensors, all finite"
    std::optional<FirstNonfinite> first_nonfinite;
    std::vector<LayerHealth> layers;   // by layer, those outside of layers last
    Figure residual_growth;            // rms of the last layer / of the first
    std::vector<std::string> findings; // vanishing, exploding, saturated: sentences
    std::uint64_t compared = 0;        // pairs with the twin
    std::uint64_t twin_nonfinite = 0;  // tensors of the twin with NaN or Inf
    std::vector<TensorPair> worst; // outputs furthest from the twin's, the worst first; a NaN is worse than anything
    std::vector<std::string> notes;

    [[nodiscard]] bool finite() const noexcept { return nonfinite == 0 && twin_nonfinite == 0; }
};

/// Errors: not_found when a recording holds no checks, or none that the twin has.
PLUMB_API Result<HealthReport> health_recording(const std::string& path, const std::string& twin = {});
/// A line "FIRST step S layer L brick NAME" names the first tensor with NaN or Inf.
PLUMB_API std::string render_text(const HealthReport& report, const TextOptions& options = {});
/// Schema plumb.health/1 (docs/report_schema.md).
PLUMB_API std::string render_json(const HealthReport& report);

} // namespace plumb
