// SPDX-License-Identifier: Apache-2.0
// For the sources of Timeline alone. Lives on the stack of the thread that calls.
#pragma once

#include "backends/cuda/timeline.hpp"

namespace plumb::backends::cuda {

/// What a thread of ours holds while it calls the driver for this context.
class Timeline::Guard {
  public:
    explicit Guard(Timeline& timeline) noexcept
        : relaxed_(timeline.driver_), current_(timeline.driver_, timeline.context_) {
        if (relaxed_.status() != CuResult::success) {
            status_ = timeline.failed(relaxed_.status(), "cuThreadExchangeStreamCaptureMode");
        } else if (current_.status() != CuResult::success) {
            status_ = timeline.failed(current_.status() == CuResult::invalid_context ? CuResult::context_is_destroyed
                                                                                     : current_.status(),
                                      "cuCtxPushCurrent");
        }
    }
    [[nodiscard]] const Status& status() const noexcept { return status_; }

  private:
    RelaxedCapture relaxed_;
    CurrentContext current_;
    Status status_;
};

} // namespace plumb::backends::cuda
