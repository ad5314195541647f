// SPDX-License-Identifier: Apache-2.0
// Writes scopes and layers whose stamps were taken earlier by the same thread, as if they had been recorded then. What ran
// is first seen whole, then told: of a graph that was not seen whole nothing is told.
// Thread rule: one thread, between two scopes of its own.
#pragma once

#include <cstdint>
#include <optional>

#include "plumb/backend.hpp"
#include "plumb/record.hpp"

namespace plumb::attach {

class LatePen {
  public:
    /// Null thread: cannot record here, and everything is dropped (counted by the recorder).
    explicit LatePen(Recorder& recorder) noexcept : thread_(recorder.thread()) {}
    LatePen(const LatePen&) = delete;
    LatePen& operator=(const LatePen&) = delete;

    /// Stamps in order: each not before the last. -1: no layer.
    void layer(std::int32_t index, std::uint64_t at) noexcept;
    /// `waited`: so many of its ticks went by at a barrier.
    void scope(Name name, std::uint64_t begin, std::uint64_t end, const Work& work,
               std::optional<std::uint64_t> waited) noexcept;
    /// A scope of a queue whose times that queue's timer has by now; what it was submitted by began at that stamp.
    void device_scope(Name name, const Queue& queue, DeviceToken token, std::uint64_t submitted,
                      const Work& work) noexcept;
    /// CPU time of this thread, read at that stamp.
    void cpu_time(std::uint64_t at, std::uint64_t nanoseconds) noexcept;
    /// Ends the layer. The thread's next scope is no longer taken for one after a long gap.
    void finish(std::uint64_t at) noexcept;

  private:
    detail::ThreadRecorder* thread_;
    std::int32_t layer_ = -1;
    std::uint64_t layer_begin_ = 0;
    bool written_ = false; // the layer's begin found room
};

} // namespace plumb::attach
