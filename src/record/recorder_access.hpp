// SPDX-License-Identifier: Apache-2.0
// How the session turns a Recorder on and off, and what the record room asks of it. Thread rule: set_* before any thread
// records; the rest from any thread.
#pragma once

#include <cstdint>

#include "plumb/record.hpp"
#include "record/ring_set.hpp"

namespace plumb {
inline namespace v1 {

/// How stamps are taken.
struct StampOptions {
    const HostClock* clock = nullptr; // null: the machine's counter
    bool serialise = false;           // every stamp
    bool serialise_layers = false;    // stamps at the borders of layers
    bool host_only = false;           // timers of queues are left alone
    std::uint64_t device_every = 1;   // device scopes are timed in every so manieth step
};

struct RecorderAccess {
    /// Once, before any other thread knows the recorder.
    static void prepare(Recorder& recorder, const StampOptions& options) noexcept;
    /// From now on threads attach to `rings`, which stay until the recorder ends (or, in a forked child, for good).
    static void connect(Recorder& recorder, record::RingSet* rings) noexcept;
    static void set_enabled(Recorder& recorder, bool on) noexcept;
    static std::uint64_t generation(const Recorder& recorder) noexcept { return recorder.generation_; }
    static std::uint64_t thread_cpu_ns(const Recorder& recorder) noexcept;
    static StampOptions stamps(const Recorder& recorder) noexcept {
        return {recorder.clock_, recorder.serialise_, recorder.serialise_layers_, recorder.host_only_,
                recorder.device_every_};
    }
    static const HostClock* clock(const Recorder& recorder) noexcept { return recorder.clock_; }
};

} // namespace v1

namespace record {
using RecorderAccess = ::plumb::RecorderAccess;
}
} // namespace plumb
