// SPDX-License-Identifier: Apache-2.0
// Which chunks of records a reader of some steps has to read. Plain functions; no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "recording/index.hpp"
#include "recording/step_ranges.hpp"

namespace plumb::recording {

struct SelectedPlaces {
    std::vector<RecordPlace> places;          // in the order of the file
    std::vector<bool> begins_anew;            // of each: its carried records come first
    std::vector<std::vector<Record>> carried; // those, of each; not filled here
};

/// Those that hold records of the steps, or do not say; those that the first decode steps end in, as many as asked for, whatever
/// their order; and before each as many as it takes to know what it follows. nullopt: that is all of them.
/// `continued`: tracks of which more records follow the last chunk.
[[nodiscard]] std::optional<SelectedPlaces> select_places(const std::vector<RecordPlace>& all, const StepRanges& steps,
                                                          std::uint64_t first_decode_steps,
                                                          const std::vector<std::uint32_t>& continued);

} // namespace plumb::recording
