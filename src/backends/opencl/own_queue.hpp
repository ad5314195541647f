// SPDX-License-Identifier: Apache-2.0
// A command queue of our own, profiled and in order, with a context of its own where none is given. Owned by one timer;
// any thread.
#pragma once

#include <memory>

#include "backends/opencl/driver.hpp"

namespace plumb::backends::opencl {

class OwnQueue {
  public:
    /// `context` null: makes one for this device.
    static Result<std::unique_ptr<OwnQueue>> create(const OpenClDriver& driver, Context context, DeviceId device);
    ~OwnQueue();
    OwnQueue(const OwnQueue&) = delete;
    OwnQueue& operator=(const OwnQueue&) = delete;

    [[nodiscard]] CommandQueue queue() const noexcept { return queue_; }
    [[nodiscard]] Context context() const noexcept { return context_; } // null where one was given

  private:
    explicit OwnQueue(const OpenClDriver& driver) : driver_(driver) {}
    const OpenClDriver& driver_;
    Context context_ = nullptr; // ours
    CommandQueue queue_ = nullptr;
};

} // namespace plumb::backends::opencl
