// SPDX-License-Identifier: Apache-2.0
// One forward pass of a dense llama or qwen2, every operation a brick. Written with the public profiling API only.
// This file is compiled twice: run_step records, run_step_compiled_out is the same source under PLUMB_DISABLE.
// One thread; neither allocates nor fails.
#pragma once

#include <cstdint>
#include <span>

#include "decoder/model/state.hpp"
#include "plumb/record.hpp"

namespace plumb::decoder {

struct StepInput {
    std::span<const std::int32_t> tokens; // 1 … state.chunk, each below the vocabulary
    Phase phase = Phase::decode;
    Sampler* sampler = nullptr; // none: nothing is sampled, as in a chunk that is not the prompt's last
};

/// Appends the tokens to the cache and leaves the logits of the last one in state.logits. Returns the sampled token, or
/// -1. REQUIRES state.prepare(tokens.size()) and room for the tokens in the cache.
using StepFunction = std::int32_t (*)(State& state, const StepInput& input, Recorder& profiler);

std::int32_t run_step(State& state, const StepInput& input, Recorder& profiler);
std::int32_t run_step_compiled_out(State& state, const StepInput& input, Recorder& profiler);

} // namespace plumb::decoder
