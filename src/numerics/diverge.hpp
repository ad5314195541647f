// SPDX-License-Identifier: Apache-2.0
// Two runs' checks -> where they part. Pure; any thread, one at a time per run.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "numerics/checked_run.hpp"
#include "numerics/tensor_pair.hpp"
#include "plumb/result.hpp"

namespace plumb {

struct DivergeOptions {
    std::optional<double> tolerance; // relative L2 distance, of floating tensors; absent: by element type
    bool exact = false;              // all bits must agree
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
    std::optional<DType> tolerance_of; // the coarsest element type of both runs set it
    bool tolerance_given = false;      // neither: no tensor of a floating type
    std::optional<FirstDivergence> first;
    std::optional<TensorPair> worst;   // of the divergent ones, else of all
    std::vector<LayerDistance> layers; // by layer; empty where nothing diverges
    std::uint64_t flip_count = 0;
    std::vector<TokenFlip> flips; // the first ones
    MissingCount only_in_a, only_in_b;
    std::vector<MissingTensor> missing; // the first ones
    std::uint64_t chunking = 0;         // tensors that depend on how prefill was cut
    std::uint64_t other_sequences = 0;  // tensors of sequences that one run alone has
    std::vector<std::string> notes;

    /// Nothing diverges, nothing is missing, and something was compared.
    [[nodiscard]] bool same() const noexcept {
        return compared != 0 && divergent == 0 && !first && only_in_a.tensors + only_in_a.steps == 0 &&
               only_in_b.tensors + only_in_b.steps == 0;
    }
};

/// Pairs the checks of two recordings and judges them. Error not_found when neither holds any.
[[nodiscard]] Result<DivergeReport> diverge_recordings(const std::string& path_a, const std::string& path_b,
                                                       const DivergeOptions& options = {});

namespace numerics {

inline constexpr std::size_t most_rows = 64; // of lists in a report; what is beyond is only counted

/// Error not_found when neither holds any check; out_of_memory beyond most_checks.
[[nodiscard]] Result<DivergeReport> diverge(const recording::RecordedRun& a, const recording::RecordedRun& b,
                                            const DivergeOptions& options);

} // namespace numerics
} // namespace plumb
