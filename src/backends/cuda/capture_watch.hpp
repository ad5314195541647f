// SPDX-License-Identifier: Apache-2.0
// Whether anything that we time, or any blocking stream, is being captured right now: for drivers on which a question about an event, from any
// thread, breaks every capture (Driver::query_breaks_captures). One per process. Thread rule: any thread; short locks.
#pragma once

#include <atomic>
#include <cstdint>

#include "backends/cuda/driver.hpp"

namespace plumb::backends::cuda {

/// How long a capture is believed to last that was seen and of whose end nothing was heard.
inline constexpr std::int64_t longest_capture_ns = 10'000'000'000;

/// A timer's stream: watched while this lives.
class WatchedStream {
  public:
    WatchedStream(const Driver& driver, Stream stream);
    ~WatchedStream();
    WatchedStream(const WatchedStream&) = delete;
    WatchedStream& operator=(const WatchedStream&) = delete;
    /// What the driver said of the stream just now. Lock-free while the stream is not captured.
    void seen(bool capturing, std::int64_t now_ns) noexcept;

  private:
    bool watched_;
    std::uint64_t id_ = 0;
    std::atomic<bool> captured_{false}; // when it was last seen
};

struct WatchAnswer {
    bool captures = false;               // such a stream of this driver is captured
    CuResult failed = CuResult::success; // or the driver does not say
};
/// Asks the driver where it can bear a stream that is gone.
WatchAnswer anything_captures(const Driver& driver, std::int64_t now_ns) noexcept;

} // namespace plumb::backends::cuda
