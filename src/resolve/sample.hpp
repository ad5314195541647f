// SPDX-License-Identifier: Apache-2.0
// One resolved interval on the common clock: what statistics and exporters consume. Plain data.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "base/layout.hpp"
#include "plumb/bricks.hpp"

namespace plumb::resolve {

enum class SampleKind : std::uint8_t { scope, lap, span, layer, step };

inline constexpr std::uint64_t no_step = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint32_t no_launch = std::numeric_limits<std::uint32_t>::max();

/// work is NaN where it was not given: never 0 for unknown. bytes already holds bytes_per_kv * kv_length.
struct Sample {
    SampleKind kind = SampleKind::scope;
    Phase phase = Phase::none;
    std::uint16_t name = 0; // 0 for step and layer
    std::uint32_t track = 0;
    std::optional<std::uint32_t> layer; // absent: outside of layers
    std::uint64_t step = no_step;
    std::int64_t begin_ns = 0;
    std::int64_t duration_ns = 0;
    std::int64_t self_ns = 0; // duration less that of direct children
    bool leaf = true;
    bool warmup = false;
    bool left_out = false;  // of a step that profiling itself made different (ResolvedStep::left_out)
    std::uint8_t flags = 0; // of a DeviceSpan: span_includes_launch_wait, span_below_floor
    /// Of a scope of a device queue: index of what launched it among the launches delivered with it. no_launch: not known.
    std::uint32_t launch = no_launch;
    /// Of device scopes, where the source tells: from when the host enqueued the first command, and from when the driver
    /// handed that to the device, to begin_ns. NaN: not known.
    double queue_delay_ns = std::numeric_limits<double>::quiet_NaN();
    double submit_delay_ns = std::numeric_limits<double>::quiet_NaN();
    /// Of its duration: for how long its thread waited for others of its team. NaN: not known.
    double barrier_wait_ns = std::numeric_limits<double>::quiet_NaN();
    double bytes = std::numeric_limits<double>::quiet_NaN();
    double flops = std::numeric_limits<double>::quiet_NaN();
    double elements = std::numeric_limits<double>::quiet_NaN();
};

/// The host's part of device work: submitting one scope, or launching one captured graph.
struct Submission {
    bool graph = false;
    bool timed = false;  // when is known
    bool warmup = false; // as of samples
    bool left_out = false;
    Phase phase = Phase::none;
    std::uint16_t name = 0;  // of a scope
    std::uint16_t flags = 0; // of a launch: launch_instrumented, …
    std::uint32_t track = 0; // the host thread
    std::uint32_t queue = 0; // track it was given to
    std::optional<std::uint32_t> layer;
    std::uint64_t step = no_step;
    std::uint64_t key = 0; // of the graph
    std::int64_t begin_ns = 0;
    std::int64_t duration_ns = 0;
    std::size_t position = 0; // it stands before the sample of that index in its batch
    /// From 1, in the order of the recording, of those that something on a device may come from: scopes, and replays with
    /// stamps or linked operations. 0: another one, or it has no time.
    std::uint64_t number = 0;

    /// A replay whose operations are scopes of queues.
    [[nodiscard]] bool linked() const noexcept { return graph && (flags & launch_linked) != 0; }
    /// A replay of which nothing says when the device was idle inside.
    [[nodiscard]] bool hides_idle() const noexcept {
        return graph && (flags & (launch_linked | launch_gapless)) != launch_linked;
    }
};

/// The submission that began a device scope.
struct Launch {
    std::uint64_t number = 0; // Submission::number
    std::uint32_t track = 0;  // the host thread
    bool inferred = false;    // the recording does not say; taken from the order of both (launches.hpp)
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    bool replay = false; // of a captured graph: it began other scopes too
};

/// Where a request belongs in a W3C trace. Both halves 0: none.
struct RequestTrace {
    std::uint64_t high = 0, low = 0;
    std::uint64_t parent_span = 0;
    std::uint8_t flags = 0;
    [[nodiscard]] bool known() const noexcept { return (high | low) != 0; }
    bool operator==(const RequestTrace&) const = default;
};

/// A mark of a request.
struct RequestEvent {
    std::uint64_t id = 0; // the caller's
    RequestMark mark = RequestMark::in_step;
    bool has_tokens = false;
    bool trace_given = false;     // one that is not known() could not be read
    std::int64_t time_ns = 0;     // in_step: when that step began
    std::uint64_t step = no_step; // of in_step
    std::uint64_t tokens = 0;     // that it gave
    RequestTrace trace;
};

/// Which collective a sample is, as its recording said.
struct CollectiveMark {
    std::size_t sample = 0;              // index in its batch
    std::uint64_t sequence_plus_one = 0; // among those of its name and group; 0: not said
    std::uint16_t group = 0;             // name of the group; 0: not said
};

/// What an answer that used an inferred launch says, once.
inline constexpr const char* inferred_launches_note =
    "This recording does not say which launch began which device scope: its links are inferred from the order of both.";

} // namespace plumb::resolve
