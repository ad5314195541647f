// SPDX-License-Identifier: Apache-2.0
// What a recording says of its checks as a whole. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "recording/recorded_run.hpp"

namespace plumb::numerics {

/// What the recording notes and what was lost of its checks; `path` says of which file.
void add_notes(const recording::RunFacts& facts, const std::string& path, std::vector<std::string>& notes);
/// The last value of that name; empty: none.
[[nodiscard]] std::string description(const recording::RunFacts& facts, const std::string& of);
/// What the session said of the tensors it looked at: with tensors=nonfinite they leave no check. Empty: none.
[[nodiscard]] std::string looked_at(const recording::RunFacts& facts);
/// What a recording without checks lacks, what was lost of it, and how to record it.
[[nodiscard]] std::string lacking_checks(const recording::RunFacts& facts);

} // namespace plumb::numerics
