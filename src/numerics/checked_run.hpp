// SPDX-License-Identifier: Apache-2.0
// The checks of one run, in order of execution, with their steps. Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "numerics/tensor_pair.hpp"
#include "plumb/result.hpp"
#include "recording/recorded_run.hpp"

namespace plumb::numerics {

/// Numbers of names by their text, for two runs at once: ids differ between processes.
class BrickTable {
  public:
    std::uint32_t number_of(const std::string& name);
    [[nodiscard]] const std::string& name(std::uint32_t number) const { return names_[number]; }

  private:
    std::map<std::string, std::uint32_t> numbers_;
    std::vector<std::string> names_;
};

/// One step of one sequence.
struct RunStep {
    std::uint64_t step_plus_one = 0;
    Phase phase = Phase::none;
    std::uint32_t sequence = 0;
    std::int64_t begin = -1;   // position of its first token, by its records, else of what was checked; -1: not known
    std::int64_t end = -1;     // behind its last one
    std::uint32_t pass = 0;    // how often the sequence went back before it: each pass is compared for itself
    std::uint32_t ordinal = 0; // among the steps of its phase and sequence
};

struct RunCheck {
    recording::TensorCheck check;
    std::uint32_t brick = 0; // number in the BrickTable
    std::uint32_t step = 0;  // index into CheckedRun::steps
};

struct CheckedRun {
    std::vector<RunCheck> checks; // by order
    std::vector<RunStep> steps;   // by first appearance
};

/// So many checks of one run are taken; about 0.5 KB each.
inline constexpr std::size_t most_checks = std::size_t{1} << 21;
inline constexpr std::size_t most_check_bytes = std::size_t{1} << 31;

/// Errors: as reading the records of the source; out_of_memory for more than `most`, or than so many bytes. A position that no token can have counts as not known.
[[nodiscard]] Result<CheckedRun> load_run(const recording::RecordedRun& source, BrickTable& bricks,
                                          std::size_t most = most_checks, std::size_t most_bytes = most_check_bytes);

/// Positions that a tensor covers: dimension 0 is rows, but for a vector, which is one.
[[nodiscard]] std::uint64_t rows_of(const recording::TensorCheck& check) noexcept;

[[nodiscard]] TensorPlace place_of(const CheckedRun& run, const RunCheck& check, const BrickTable& bricks);
[[nodiscard]] TensorFacts facts_of(const recording::TensorCheck& check) noexcept;

/// The inputs of the call that made `checks[output]`: those of the same step, layer and brick, back to an output of an
/// earlier call. Indexes, in order.
[[nodiscard]] std::vector<std::uint32_t> inputs_of_call(const CheckedRun& run, std::uint32_t output);

} // namespace plumb::numerics
