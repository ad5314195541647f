// SPDX-License-Identifier: Apache-2.0
// How the session turns a Recorder on and off, and what the record room asks of it. Thread rule: set_* before any thread
// records; the rest from any thread.
#pragma once

#include <cstdint>

#include "plumb/record.hpp"
#include "record/ring_set.hpp"

namespace plumb {
inline namespace v1 {

struct RecorderAccess {
    /// Connects the hot half: from now on threads attach to `rings`. `clock` null: the machine's counter.
    static void connect(Recorder& recorder, record::RingSet* rings, const HostClock* clock, bool serialise) noexcept;
    static void set_enabled(Recorder& recorder, bool on) noexcept;
    static std::uint64_t generation(const Recorder& recorder) noexcept { return recorder.generation_; }
    static std::uint64_t thread_cpu_ns(const Recorder& recorder) noexcept;
    static const HostClock* clock(const Recorder& recorder) noexcept { return recorder.clock_; }
};

} // namespace v1

namespace record {
using RecorderAccess = ::plumb::RecorderAccess;
}
} // namespace plumb
