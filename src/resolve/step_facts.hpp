// SPDX-License-Identifier: Apache-2.0
// What a sample inherits from the step it lies in, found by the step's id. Owned by whoever knows the steps; constant while it is
// asked, and may then be shared between threads.
#pragma once

#include <cstdint>

#include "plumb/bricks.hpp"

namespace plumb::resolve {

struct StepFacts {
    std::uint64_t kv_length = 0;
    Phase phase = Phase::none;
    bool has_kv_length = false;
    bool warmup = false;
    bool left_out = false;
};

class StepFactsSource {
  public:
    virtual ~StepFactsSource() = default;
    /// False: no complete step has that id.
    [[nodiscard]] virtual bool facts_of(std::uint64_t id, StepFacts& facts) const noexcept = 0;
};

} // namespace plumb::resolve
