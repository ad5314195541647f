// SPDX-License-Identifier: Apache-2.0
// The device contract: what a backend promises to whoever times work on its queues (docs/reference/backends.md).
// Backends are owned by the library and live as long as the process; a QueueTimer is owned by whoever made it and must
// outlive every token it gave. Thread rule: every function may be called from any thread, unless its comment says less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/callback.hpp"
#include "plumb/clock.hpp"
#include "plumb/result.hpp"
#include "plumb/roofline.hpp"
#include "plumb/work.hpp"

namespace plumb {

/// What a backend can do here, or why not: never a quiet no-op.
struct Capability {
    std::string name; // "graph_capture"
    bool supported = false;
    std::string reason; // never empty where unsupported: "a CPU has no captured graphs"
};

struct Device {
    std::uint32_t index = 0;
    std::string name;   // as the vendor calls it
    std::string driver; // version, empty where there is none
    std::vector<Capability> capabilities;
    std::string uuid{}; // as the vendor writes it, empty where there is none
};

/// One open or finished scope of a queue; names it in that queue's timer only. Never 0 and never 2^64-1.
struct DeviceToken {
    std::uint64_t value = 0;
};

/// A stamp that this source does not give.
inline constexpr std::uint64_t no_ticks = ~std::uint64_t{0};

/// Begin and end in ticks of the queue's clock; begin_ticks <= end_ticks.
struct DeviceSpan {
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = 0;
    std::uint32_t flags = 0;
    std::uint64_t queued_ticks = no_ticks;    // the host enqueued its first command
    std::uint64_t submitted_ticks = no_ticks; // the driver handed that command to the device
};
/// Flags of a DeviceSpan. The queue was idle when the scope began: waiting for its launch is inside.
inline constexpr std::uint32_t span_includes_launch_wait = 1;
/// Shorter than the source can resolve.
inline constexpr std::uint32_t span_below_floor = 2;
/// Of a queue that runs out of order: it may begin before the device works on it and overlap others, so that only the
/// union of such spans is time in which the device was busy, never their sum.
inline constexpr std::uint32_t span_may_overlap = 4;
/// Of a queue that runs in order: the device worked on it while the scope before it was still running, and it begins only
/// where that one ended. It may be shorter than its work took; no time is in two such spans, so that their sum is busy time.
inline constexpr std::uint32_t span_cut_by_neighbour = 8;

/// The queue's clock and the host's at one moment: `ticks` is the middle of a bracket `uncertainty_ticks` wide.
struct DeviceClockPair {
    std::uint64_t ticks = 0;
    std::int64_t monotonic_ns = 0; // the common clock: CLOCK_MONOTONIC, or TimerOptions::host_clock
    std::int64_t realtime_ns = 0;
    std::uint64_t uncertainty_ticks = 0;
};

/// A duration and how far it may be off, both in nanoseconds.
struct Elapsed {
    double nanoseconds = 0;
    double uncertainty = 0;
};

inline namespace v1 {
class Recorder; // record.hpp
}

/// What a scope is: for queues that are captured into a graph (the scope is then noted, not timed), and for queues where
/// timing has its price, so that it is done in some steps only.
struct ScopeLabel {
    const Recorder* recorder = nullptr; // whose scope it is
    std::uint16_t name = 0;             // Name::id
    std::uint16_t layer_plus_one = 0;   // 0: outside any layer
    bool lap = false;
    bool timed = true; // false: this step is not among those that are timed
};
/// A token of begin_labelled() with this value: nothing is timed, and nothing must be ended.
inline constexpr std::uint64_t token_not_timed = 0;
/// A bit of tokens of begin_labelled(): noted in a capture. Must be ended; is never collected, never waited for.
inline constexpr std::uint64_t token_noted = std::uint64_t{1} << 63;

struct TimerOptions {
    /// sync=immediate: whoever ends a scope waits until the device has finished it. Exact, and it serialises.
    bool immediate = false;
    /// Scopes begun and not yet collected, at most; beyond it begin() is refused. Memory is taken at creation.
    std::uint32_t max_in_flight = 16384;
    /// Injected host clock; null: this machine's. Must outlive the timer.
    const HostClock* host_clock = nullptr;
};

/// Times scopes on one queue. begin() and end() are called where the engine enqueues its work: they do not wait for the
/// device, take no lock that another thread may hold long, and allocate nothing unless they fail.
class PLUMB_API QueueTimer {
  public:
    virtual ~QueueTimer() = default;
    QueueTimer() = default;
    QueueTimer(const QueueTimer&) = delete;
    QueueTimer& operator=(const QueueTimer&) = delete;

    /// Error out_of_memory when max_in_flight scopes are not collected yet.
    [[nodiscard]] virtual Result<DeviceToken> begin() noexcept = 0;
    /// Once per token. Error not_found for a token that is not open.
    [[nodiscard]] virtual Status end(DeviceToken token) noexcept = 0;
    /// A scope that is one command: `event` is the vendor's handle of that command's event (a cl_event), kept by the timer
    /// as long as it needs it. The token has ended already; Profiler::record_device() puts it into a recording. Error
    /// unsupported where times do not belong to commands.
    [[nodiscard]] virtual Result<DeviceToken> attach(void* event) noexcept {
        static_cast<void>(event);
        return Error{ErrorCode::unsupported,
                     "this queue's commands have no times of their own; use begin() and end() around them"};
    }
    /// begin() for scopes whose label is known. See token_not_timed and token_noted. By default the label is ignored.
    [[nodiscard]] virtual Result<DeviceToken> begin_labelled(const ScopeLabel& label) noexcept {
        static_cast<void>(label);
        return begin();
    }
    /// end() with the scope's work, for a token of begin_labelled(); null: no work was given.
    [[nodiscard]] virtual Status end_labelled(DeviceToken token, const Work* work) noexcept {
        static_cast<void>(work);
        return end(token);
    }
    /// Ends one scope and begins the next at the same moment: one stamp for both where the backend can. When this fails
    /// both are given up.
    [[nodiscard]] virtual Result<DeviceToken> lap(DeviceToken ended, const Work* work,
                                                  const ScopeLabel& next) noexcept {
        if (ended.value != token_not_timed) {
            if (Status status = end_labelled(ended, work); !status.ok()) {
                cancel(ended);
                return status.error();
            }
        }
        return begin_labelled(next);
    }
    /// True where ScopeLabel::timed has an effect: such a queue's scopes are sampled by step.
    [[nodiscard]] virtual bool sampled_by_step() const noexcept { return false; }
    /// The token's times, once; never waits. Error pending while the scope is open or the device has not finished it
    /// (the token stays valid), not_found for a token that was never given or is spent, corrupt when the stamps
    /// contradict each other (the token is spent).
    [[nodiscard]] virtual Result<DeviceSpan> collect(DeviceToken token) noexcept = 0;
    /// Gives up a token that nobody will collect, open or ended. An unknown one is ignored.
    virtual void cancel(DeviceToken token) noexcept = 0;
    /// Waits until the device has finished an ended scope; for sync=immediate only. May drain the queue.
    [[nodiscard]] virtual Status wait(DeviceToken token) noexcept = 0;
    [[nodiscard]] virtual bool immediate() const noexcept = 0;

    /// Source of its samples: "cpu_tsc", "cuda_event", …
    [[nodiscard]] virtual const char* source() const noexcept = 0;
    /// Name of the queue's clock: "tsc", "cuda:0". Queues with one clock share its name.
    [[nodiscard]] virtual std::string clock_name() const = 0;
    /// True where the queue's ticks are the host clock's own: such spans need no fit.
    [[nodiscard]] virtual bool clock_is_host() const noexcept = 0;
    [[nodiscard]] virtual Result<DeviceClockPair> clock_pair() noexcept = 0;
    /// The span's length. Error unavailable where the clock's rate is not known yet.
    [[nodiscard]] virtual Result<Elapsed> duration(const DeviceSpan& span) = 0;
    /// What an empty scope reads, in nanoseconds: the median of a measurement made now.
    [[nodiscard]] virtual Result<double> floor_ns() = 0;
    [[nodiscard]] virtual std::vector<Capability> capabilities() const = 0;
    /// Tokens begun and neither collected nor cancelled.
    [[nodiscard]] virtual std::size_t in_flight() const noexcept = 0;
    /// Ended scopes of a group become ready as they ended; of another group than 0 perhaps never (not submitted): they hold
    /// back no other group. The token's own value: a command that runs out of order. Default: all are of group 0.
    [[nodiscard]] virtual std::uint64_t group_of(DeviceToken) noexcept { return 0; }
    /// Device::name of the queue's device: its number depends on what its process may see, its name does not. Empty: not known.
    [[nodiscard]] virtual std::string device_name() const { return {}; }
};

/// Told how far a measurement is: "read bandwidth, all cores", 3, 10. May be empty.
using PeakProgress = Callback<void(const char* what, int done, int total)>;

/// One vendor's way to time work. A missing driver is a state of the object, not of the build.
class PLUMB_API Backend {
  public:
    virtual ~Backend() = default;

    /// One word: "cpu", "cuda".
    [[nodiscard]] virtual const char* name() const noexcept = 0;
    /// Error unavailable, with one sentence of advice, where driver or device is missing.
    [[nodiscard]] virtual Result<std::vector<Device>> enumerate() = 0;
    /// A timer for the vendor's queue `native` (a stream, a command queue; null where the backend has no such thing).
    [[nodiscard]] virtual Result<std::unique_ptr<QueueTimer>> make_queue_timer(std::uint32_t device, void* native,
                                                                               const TimerOptions& options) = 0;
    /// What the device can do at most, measured now; takes seconds of the whole device. What could not be measured is an
    /// absent figure. Error unsupported, with the reason, where a backend measures nothing; not_found for a device that
    /// does not exist.
    [[nodiscard]] virtual Result<Peaks> measure_peaks(std::uint32_t device, const PeakProgress& progress) {
        static_cast<void>(device);
        static_cast<void>(progress);
        return Error{ErrorCode::unsupported,
                     std::string("the ") + name() + " backend measures no peaks of its devices"};
    }
};

/// Every backend of this build, available here or not.
PLUMB_API std::vector<Backend*> all_backends();
/// Error not_found lists the ones there are.
PLUMB_API Result<Backend*> find_backend(const std::string& name);

} // namespace plumb
