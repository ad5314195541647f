// SPDX-License-Identifier: Apache-2.0
// The traces of many ranks as one file, on one clock. One thread: main's.
#pragma once

#include <string>
#include <vector>

#include "plumb/answer.hpp"
#include "plumb/result.hpp"

namespace plumb::cli {

/// A TAR of traces, one for each rank that `ranks` (an answer of that name) put on its clock, and a manifest that says to Perfetto how
/// their clocks relate. Drift has no place in it: moments are right in the middle of each recording.
[[nodiscard]] Status write_rank_traces(const std::string& output, const std::vector<std::string>& inputs,
                                       const Answer& ranks);

} // namespace plumb::cli
