// SPDX-License-Identifier: Apache-2.0
// What a trace of any tool consists of once it was read: canonical operations of devices and of host threads. Formats end here;
// rules, steps, layers and the recording begin here. Plain data without pointers; owned by whoever holds the value; no thread
// rule.
#pragma once

#include <cstdint>
#include <limits>

namespace plumb::imported {

inline constexpr std::uint64_t no_id = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint32_t no_name = std::numeric_limits<std::uint32_t>::max();

/// graph: a whole replay in one piece, of a tool that was told not to look inside.
enum class DeviceOpKind : std::uint8_t { kernel = 0, memcpy = 1, memset = 2, graph = 3 };

/// One operation on one device queue. Times are ns on the trace's own clock, from any zero; end_ns >= start_ns.
struct DeviceOp {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t correlation = no_id; // of the call that launched it, unique in its process; all of a replay share it
    std::uint64_t node = no_id;        // of the captured graph
    std::uint32_t name = 0;            // Trace::names, as the tool wrote it
    std::uint32_t graph = 0;           // of that process, from 1; 0: none or not known
    std::uint32_t stream = 0;          // Trace::streams
    std::uint16_t process = 0;         // Trace::processes
    DeviceOpKind kind = DeviceOpKind::kernel;
    std::uint32_t module = no_name; // Trace::names: of the model, as the program labelled the kernel
    std::uint32_t group =
        no_name; // Trace::names: of TraceFacts::groups, in which a collective's ranks wait for each other

    [[nodiscard]] std::int64_t duration_ns() const { return end_ns - start_ns; }
};

/// api: a call of the runtime or driver, with the correlation of what it launched. profiler_step: ProfilerStep#7 and its like.
/// annotation: a range that the engine named. module: nn.Module of a stack.
enum class HostOpKind : std::uint8_t { api = 0, profiler_step = 1, annotation = 2, module = 3 };

/// One operation of one host thread.
struct HostOp {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::uint64_t correlation = no_id; // of an api call
    std::uint32_t name = 0;            // Trace::names
    std::uint32_t thread = 0;          // Trace::threads
    std::uint32_t target = no_name;    // Trace::names: the kernel that an api call launches
    std::uint16_t process = 0;
    HostOpKind kind = HostOpKind::api;

    [[nodiscard]] std::int64_t duration_ns() const { return end_ns - start_ns; }
};

/// A device queue: operations of one stream follow each other, but for programmatic overlaps.
struct Stream {
    std::uint64_t id = 0; // as the tool numbers it
    std::uint32_t device = 0;
    std::uint16_t process = 0;
    std::uint32_t namesakes = 0; // streams before it of the same process, device and id
};

struct Thread {
    std::uint64_t id = 0;
    std::uint16_t process = 0;
};

} // namespace plumb::imported
