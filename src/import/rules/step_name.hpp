// SPDX-License-Identifier: Apache-2.0
// What an engine's name of a step says of it, for traces and for NVTX ranges alike. Pure function; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "plumb/bricks.hpp"
#include "plumb/work.hpp"

namespace plumb::imported {

struct StepName {
    Phase phase = Phase::none; // none: the name does not say
    detail::StepValues values;
};

/// vLLM's execute_context_2(512)_generation_17(17): sequences, and their tokens in parentheses; also with all tokens in front:
/// execute_529_context_2(…)_generation_17(…). SGLang's step[DECODE bs=32], step[EXTEND bs=15 toks=15360]. Nothing for other names.
[[nodiscard]] std::optional<StepName> read_step_name(std::string_view name);

} // namespace plumb::imported
