// SPDX-License-Identifier: Apache-2.0
// One forward pass, every operation a brick; the same for all families, which differ by their config and weights alone.
// Written with the public profiling API only.
// This file is compiled twice: run_step records, run_step_compiled_out is the same source under PLUMB_DISABLE.
// One thread; neither allocates nor fails.
#pragma once

#include <cstdint>
#include <span>

#include "decoder/model/state.hpp"
#include "plumb/record.hpp"

namespace plumb::decoder {

/// Tokens of one sequence, as in a prompt, or the next token of each of several.
struct StepInput {
    std::span<const std::int32_t> tokens; // each below the vocabulary; as many as there are sequences, or of one alone
    Phase phase = Phase::decode;
    Sampler* sampler =
        nullptr;              // the first of `sequences`; none: nothing is sampled, as in a chunk that is not the last
    std::size_t sequence = 0; // the first
    std::size_t sequences = 1;
};

/// Appends the tokens to the caches and leaves the logits of each sequence's last one in state.logits, the sampled tokens in
/// state.sampled. Returns the first sequence's sampled token, or -1. REQUIRES state.prepare(tokens.size()) and room for
/// the tokens in the caches.
using StepFunction = std::int32_t (*)(State& state, const StepInput& input, Recorder& profiler);

std::int32_t run_step(State& state, const StepInput& input, Recorder& profiler);
std::int32_t run_step_compiled_out(State& state, const StepInput& input, Recorder& profiler);

} // namespace plumb::decoder
