// SPDX-License-Identifier: Apache-2.0
// A stream of our own where nobody gave one. Any thread.
#pragma once

#include <memory>

#include "backends/cuda/driver.hpp"

namespace plumb::backends::cuda {

/// A stream of our own on a device's primary context, for timers that nobody gave a stream to.
class OwnStream {
  public:
    static Result<std::unique_ptr<OwnStream>> create(const Driver& driver, Device device);
    ~OwnStream();
    OwnStream(const OwnStream&) = delete;
    OwnStream& operator=(const OwnStream&) = delete;
    [[nodiscard]] Stream stream() const noexcept { return stream_; }
    [[nodiscard]] Context context() const noexcept { return context_; }

  private:
    OwnStream(const Driver& driver, Device device) : driver_(driver), device_(device) {}
    const Driver& driver_;
    Device device_;
    Context context_ = nullptr;
    Stream stream_ = nullptr;
};

} // namespace plumb::backends::cuda
