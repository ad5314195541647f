// SPDX-License-Identifier: Apache-2.0
// Device time of one context: a bounded pool of timing events, and the queue clock on which they are placed. The
// clock's ticks are nanoseconds of the device, counted from a base event; anchor events, recorded on a stream of our own
// a fifth of a second apart and chained in double, keep the driver's floats short. Nothing here waits for the device
// beyond a short spin, nothing disturbs a capture, and after a sticky error or the context's end no call is made any more.
// Shared by its users. Thread rule: any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/host_line.hpp"
#include "backends/cuda/tick_finder.hpp"
#include "clock/host_clock.hpp"
#include "plumb/backend.hpp"

namespace plumb::backends::cuda {

/// Two events on the queue clock.
struct EventSpan {
    std::uint64_t begin_ticks = 0;
    double length_ns = 0;  // by the direct pair
    HostPlace begin_place; // on the common clock
};

/// What a context's times are of.
struct TimedDevice {
    std::string clock; // "cuda:0"
    std::string name;  // as the vendor calls it
};

class Timeline {
  public:
    static constexpr std::size_t max_events = std::size_t{1} << 18; // of one context, in use and pooled
    static constexpr std::int64_t anchor_gap_ns = 200'000'000;

    /// Takes its first events and anchors, and learns the tick; what a busy device does not answer within milliseconds is
    /// left to tend(). `host_clock` null: this machine's.
    static Result<std::shared_ptr<Timeline>> create(const Driver& driver, Context context, TimedDevice device,
                                                    const HostClock* host_clock);
    ~Timeline();
    Timeline(const Timeline&) = delete;
    Timeline& operator=(const Timeline&) = delete;

    /// A timing event of this context. Makes a chunk of them where the pool is empty; error out_of_memory at the bound.
    [[nodiscard]] Result<Event> acquire() noexcept;
    /// A record of it may still be pending; it must not be part of any graph that can still be launched.
    void release(Event event) noexcept;
    /// Makes events until so many lie in the pool: off the hot path.
    [[nodiscard]] Status reserve(std::size_t count) noexcept;

    /// False while the device has not reached the event's last record. Never ask for one last recorded in a capture.
    [[nodiscard]] Result<bool> reached(Event event) noexcept;
    /// Nanoseconds from `a` to `b`, by the direct pair; error pending until the device has reached both.
    [[nodiscard]] Result<double> between(Event a, Event b) noexcept;
    /// A reached event's ticks on the queue clock, by the nearest anchor; error pending before.
    [[nodiscard]] Result<std::uint64_t> place(Event event) noexcept;

    /// All of this for two events of one stream, in one go; error pending while the device has not reached `end`.
    [[nodiscard]] Result<EventSpan> span(Event begin, Event end) noexcept;
    /// Polls for one event on a thread of ours, for so long at most; error pending after that.
    [[nodiscard]] Status wait_for(Event event, std::int64_t limit_ns) noexcept;
    /// Waits for one event, for sync=immediate alone.
    [[nodiscard]] Status wait(Event event) noexcept;

    /// Records on our idle stream and polls a short while; error pending when the device did not answer in time.
    [[nodiscard]] Result<DeviceClockPair> clock_pair() noexcept;
    /// Where ticks lie on the common clock, and how far off that may be.
    [[nodiscard]] Result<HostPlace> to_host(std::uint64_t ticks) noexcept;
    /// Keeps the anchors close together; cheap until one is due. `now_ns` is the common clock's.
    /// `may_spin`: the caller is no thread of the engine's, so that a clock pair may be read along with it.
    void tend(std::int64_t now_ns, bool may_spin) noexcept;
    /// What an empty pair of records on an idle stream reads, in nanoseconds: the median of a measurement made now.
    [[nodiscard]] Result<double> floor_ns();

    /// Ok where event nodes of a graph read times that can be: tried once, by a tiny graph on our own stream, where the
    /// vendor doubts it. Error unsupported says what they did; pending: ask again when the device is less busy.
    [[nodiscard]] Status event_nodes();

    /// "cuda:0"; each further timeline of that device has a clock of its own, "cuda:0#2", also when the first has ended.
    [[nodiscard]] const std::string& clock_name() const noexcept { return device_.clock; }
    [[nodiscard]] const std::string& device_name() const noexcept { return device_.name; }
    /// What the event clock counts in, in nanoseconds; 0 while unknown.
    [[nodiscard]] double tick_ns() const noexcept;
    /// What empty pairs read when the tick was learnt, their middle in size; 0 while unknown.
    [[nodiscard]] double empty_pair_ns() const noexcept { return empty_pair_ns_.load(std::memory_order_relaxed); }
    [[nodiscard]] const Driver& driver() const noexcept { return driver_; }
    [[nodiscard]] Context context() const noexcept { return context_; }
    [[nodiscard]] const clock::HostClockSource& host_clock() const noexcept { return host_clock_; }
    /// The stream of our own: non-blocking, idle but for anchors.
    [[nodiscard]] Stream stream() const noexcept { return stream_; }

    /// An error after a sticky one or the context's end: from then on nothing calls the driver.
    [[nodiscard]] Status status() const noexcept;
    [[nodiscard]] bool lost() const noexcept { return lost_.load(std::memory_order_acquire); }
    /// Lost because its context was destroyed: other contexts may live on.
    [[nodiscard]] bool ended() const noexcept { return lost() && ended_; }
    /// The error of a call on this context; remembers a sticky one.
    [[nodiscard]] Error failed(CuResult result, const char* call) noexcept;
    /// Events that exist now, in use or pooled.
    [[nodiscard]] std::size_t events() const noexcept { return event_count_.load(std::memory_order_relaxed); }

  private:
    struct Anchor {
        Event event = nullptr;
        double at = 0; // nanoseconds from the base
    };
    class Guard;

    Timeline(const Driver& driver, Context context, TimedDevice device, const HostClock* host_clock);
    /// Whether events may be asked for now; pending while that would break a capture.
    [[nodiscard]] Status askable() noexcept;
    /// The same, and the guard that the caller then holds.
    [[nodiscard]] Status ask(std::optional<Guard>& guard) noexcept;
    Status open();
    Result<bool> open_base();
    Status grow(std::size_t count) noexcept;
    Result<double> elapsed(Event a, Event b) noexcept;
    Status wait_short(Event event, std::int64_t limit_ns) noexcept;
    Result<std::vector<double>> empty_pairs(std::size_t count, bool learn, std::int64_t limit_ns);
    Status learn_tick(std::int64_t limit_ns);
    Status add_anchor() noexcept;
    void await_anchor(Event event) noexcept;
    void resolve_anchors() noexcept;
    void put_anchor(Event event, double at) noexcept;
    Result<DeviceClockPair> try_pair(Event event) noexcept;
    Result<DeviceClockPair> read_pair() noexcept;
    Result<double> from_base(Event event) noexcept;
    [[nodiscard]] std::uint64_t ticks_at(double at) const noexcept;
    [[nodiscard]] std::int64_t now_ns() const noexcept { return clock::now_ns(host_clock_).value; }

    const Driver& driver_;
    Context context_;
    clock::HostClockSource host_clock_;
    Stream stream_ = nullptr;
    TimedDevice device_;
    std::uint64_t base_ticks_ = 0; // the common clock when the base was recorded: a later timeline goes on near there

    std::mutex pool_mutex_;
    std::vector<Event> pool_;
    std::atomic<std::size_t> pooled_{0}; // its size, for those who only look
    std::atomic<std::size_t> event_count_{0};

    std::mutex anchor_mutex_;      // guards what follows, and the order of records on our stream
    std::deque<Anchor> anchors_;   // placed, oldest first
    std::deque<Event> unresolved_; // recorded, not placed yet
    HostLine line_;

    std::atomic<std::int64_t> next_anchor_ns_{0};
    std::atomic<std::int64_t> next_pair_ns_{0};
    std::int64_t pair_gap_ns_ = 5'000'000; // grows to anchor_gap_ns: a young clock needs its rate soon
    TickFinder tick_;
    std::atomic<double> empty_pair_ns_{0};
    std::mutex nodes_mutex_;
    std::optional<Status> nodes_; // what event nodes did; empty: not known yet
    mutable std::mutex status_mutex_;
    Status status_;
    bool ended_ = false;            // written once, before lost_
    std::atomic<bool> lost_{false}; // release: whoever sees it sees the two above
};

/// The timeline of a stream's context (the current context's for the null stream), made at its first use and alive as
/// long as somebody holds it. Error unavailable without a driver.
Result<std::shared_ptr<Timeline>> timeline_of(Stream stream, const HostClock* host_clock = nullptr);
Result<std::shared_ptr<Timeline>> timeline_of(const Driver& driver, Stream stream, const HostClock* host_clock);

} // namespace plumb::backends::cuda
