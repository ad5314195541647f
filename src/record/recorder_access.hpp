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
    std::uint64_t device_every = 1;   // device scopes are timed in one step out of so many
    bool tiles = false;               // PLUMB_TILE acts
    bool hide_traces = false;         // trace ids of requests are not kept
};

/// What is known of a step that runs now.
struct RunningStep {
    Phase phase = Phase::none;
    std::int64_t position = -1; // of its first token; -1: not known
};

struct RecorderAccess {
    /// Once, before any other thread knows the recorder.
    static void prepare(Recorder& recorder, const StampOptions& options) noexcept;
    /// From now on threads attach to `rings`, which stay until the recorder ends (or, in a forked child, for good).
    static void connect(Recorder& recorder, record::RingSet* rings) noexcept;
    static void set_enabled(Recorder& recorder, bool on) noexcept;
    /// From now on (at the next set_enabled()) PLUMB_TENSOR asks `sink`; null: nobody, at once.
    static void connect_tensors(Recorder& recorder, record::TensorSink* sink) noexcept;
    static record::TensorSink* tensors(const Recorder& recorder) noexcept {
        return recorder.tensors_.load(std::memory_order_acquire); // pairs with connect_tensors()
    }
    /// Phase and position of one of the last steps; unknown ones where it was not begun while tensors are looked at.
    static RunningStep step_facts(const Recorder& recorder, std::uint64_t step_plus_one) noexcept;
    static record::RingSet* rings(const Recorder& recorder) noexcept {
        return recorder.rings_.load(std::memory_order_acquire); // pairs with connect()
    }
    static std::uint64_t generation(const Recorder& recorder) noexcept { return recorder.generation_; }
    static std::uint64_t thread_cpu_ns(const Recorder& recorder) noexcept;
    static StampOptions stamps(const Recorder& recorder) noexcept {
        return {recorder.clock_,        recorder.serialise_, recorder.serialise_layers_, recorder.host_only_,
                recorder.device_every_, recorder.tiles_,     recorder.hide_traces_};
    }
    static const HostClock* clock(const Recorder& recorder) noexcept { return recorder.clock_; }
};

} // namespace v1

namespace record {
using RecorderAccess = ::plumb::RecorderAccess;
}
} // namespace plumb
