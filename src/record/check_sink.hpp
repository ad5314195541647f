// SPDX-License-Identifier: Apache-2.0
// What a Recorder asks when a tensor is to be checked. Owned by the session, which connects it before recording begins
// and disconnects it after the last call. Thread rule: check() from any recording thread.
#pragma once

#include <cstdint>

#include "plumb/check.hpp"

namespace plumb::record {

/// One PLUMB_CHECK, with all that the calling thread knows.
struct CheckCall {
    const Recorder* recorder = nullptr;
    Name name;
    CheckRole role = CheckRole::output;
    Queue queue;
    const Tensor* tensor = nullptr; // borrowed for the call
    CheckPlace place;               // position: settled where it can be; -1 where nobody said
    Phase phase = Phase::none;      // of the step
    std::uint64_t step_plus_one = 0;
    std::uint32_t layer_plus_one = 0;
    std::uint32_t track = 0; // of the calling thread
};

class CheckSink {
  public:
    virtual ~CheckSink() = default;
    virtual void check(const CheckCall& call) noexcept = 0;
};

} // namespace plumb::record
