// SPDX-License-Identifier: Apache-2.0
// What a Recorder asks when it is handed a tensor. Owned by the session, which connects it before recording begins
// and disconnects it after the last call. Thread rule: take() from any recording thread.
#pragma once

#include <cstdint>

#include "base/layout.hpp"
#include "plumb/tensor.hpp"

namespace plumb::record {

/// One PLUMB_TENSOR, with all that the calling thread knows.
struct TensorCall {
    const Recorder* recorder = nullptr;
    Name name;
    TensorRole role = TensorRole::output;
    Queue queue;
    const Tensor* tensor = nullptr; // borrowed for the call
    TensorTags tags;                // position: settled where it can be; -1 where nobody said
    Phase phase = Phase::none;      // of the step
    std::uint64_t step_plus_one = 0;
    std::uint32_t layer_plus_one = 0;
    std::uint32_t track = 0; // of the calling thread
};

class TensorSink {
  public:
    virtual ~TensorSink() = default;
    virtual void take(const TensorCall& call) noexcept = 0;
};

} // namespace plumb::record
