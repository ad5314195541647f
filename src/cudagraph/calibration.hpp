// SPDX-License-Identifier: Apache-2.0
// What a stamp costs in a replay, and whether the parts of a replay add up to the whole. Pure; bounded memory.
// Owned by one probe, which guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace plumb::cudagraph {

/// The last readings of one thing.
class Readings {
  public:
    explicit Readings(std::size_t most = 32) : most_(most) {}
    void add(double value);
    [[nodiscard]] std::size_t count() const { return values_.size(); }
    /// NaN where there is nothing.
    [[nodiscard]] double median() const;
    /// Without outliers: as sound as a median, and finer than the clock's tick where readings straddle it.
    [[nodiscard]] double sound_mean() const { return estimate().mean; }
    struct Estimate {
        double mean = 0;  // NaN where there is nothing
        double error = 0; // standard error
    };
    /// Readings within a tick of the median are no outliers.
    [[nodiscard]] Estimate estimate(double tick_ns = 0) const;
    /// Of one reading, around the median: as a standard deviation, blind to outliers. NaN where there is nothing.
    [[nodiscard]] double spread() const;

  private:
    std::size_t most_;
    std::size_t next_ = 0;
    std::vector<double> values_;
};

/// Readings of one replay. Nanoseconds, raw: what the stamps cost is inside.
struct ReplayReadings {
    std::vector<double> since_anchor; // per planned stamp, from the anchor's last copy to the first copy of this one
    std::vector<double> pair;         // per planned stamp: between its two copies; NaN: it has one
};

/// What one stamp costs: what empty pairs read inside the replays themselves, unless that is compatible with what a
/// calibration read over many stamps at once (NaN: there was none). Replays that always begin alike read the same side of
/// the clock's tick each time, so that their mean may be a tick off.
[[nodiscard]] double cost_of_a_stamp(const Readings& pairs, double calibrated, double tick_ns);

/// What a stamp with work on both sides adds to a replay, nanoseconds.
struct SiteCost {
    double ns = 0;    // NaN: not known, or its readings lie too far apart to say
    double error = 0; // of that, three standard errors; half of it at least, until replays confirm it
    double pair = 0;  // what an empty pair reads: the cost of a stamp that another one follows
};

/// `in_replays`: by instrumented replays against their plain neighbours (SiteBook). It counts where it differs from what empty
/// pairs read by more than its error; `calibrated` is of an idle device, and does only where the pairs do not contradict.
[[nodiscard]] SiteCost cost_of_a_site(const Readings& pairs, double calibrated, double tick_ns,
                                      const Readings::Estimate& in_replays);

/// What a timer's readings are multiples of, from one first reading: over some moments that is its tick. Where two with
/// nothing between them read the same, the tick is longer than a stamp takes, and their shortest step says how long.
class TimerTick {
  public:
    static constexpr std::size_t enough = 16, few = 3;
    void add(std::uint64_t reading);
    /// Of two that follow each other, both added too.
    void add_step(std::uint64_t from, std::uint64_t to);
    /// Readings that differ from the first: with fewer than `enough`, multiples of the tick may be taken for it.
    [[nodiscard]] std::size_t differences() const { return differences_; }
    [[nodiscard]] double ns() const; // NaN where there is nothing

  private:
    std::uint64_t first_ = 0;
    std::uint64_t common_ = 0;
    std::uint64_t shortest_ = UINT64_MAX;
    std::size_t differences_ = 0;
    bool stood_ = false;
};

/// What sites cost under the load that there is: instrumented replays against the plain ones next to them. The inside of a
/// replay is from its first stamp to its last. What lies between a plain replay's events and its inside cancels against
/// *frames*: replays with a stamp before the first node and one behind the last, and none between.
class SiteBook {
  public:
    static constexpr std::size_t enough_stamped = 8;
    static constexpr std::size_t enough_framed = 3;
    /// In the order of launches; `waited`: the wait for its launch is inside of the span.
    void add_plain(std::uint64_t number, double span_ns, bool waited);
    void add_stamped(std::uint64_t number, double inside_ns, bool waited);
    void add_framed(std::uint64_t number, double inside_ns, bool waited);
    /// Instrumented replays are of that turn from now on, and hold so many sites more than a frame.
    void begin_turn(std::size_t turn, std::size_t sites);
    /// There are instrumented replays that no frame of their kind stands against.
    [[nodiscard]] bool wants_frame() const;
    /// Sooner or later there will be.
    [[nodiscard]] bool lacks_frames() const { return sites_ != 0 && kind().framed.count() < enough_framed; }
    /// Of one site; NaN while not known.
    [[nodiscard]] Readings::Estimate site() const;
    /// That replay, not added yet, was held up by something that the ones before it and the plain one next to it were not.
    [[nodiscard]] bool stands_out(std::uint64_t number, double inside_ns, bool waited, double slack_ns) const;

  private:
    struct Kind {
        Readings plain;
        Readings stamped; // less the plain neighbours
        Readings framed;
    };
    struct Reading {
        std::uint64_t number = 0; // 0: none
        double ns = 0;
        bool waited = false;
    };
    [[nodiscard]] const Kind& kind() const;
    /// As if the plain replay before it had been as long as those mostly are.
    [[nodiscard]] double usual_inside(std::uint64_t number, double inside_ns, bool waited) const;
    void add(std::uint64_t number, double inside_ns, bool waited, Readings Kind::*to);
    void settle(double plain_ns);

    Kind waiting_, busy_;
    std::vector<Readings> insides_ = std::vector<Readings>(1); // per turn, of both kinds, as usual_inside() has them
    std::size_t turn_ = 0;
    Reading plain_;   // the last one
    Reading pending_; // until the plain one behind it is read
    double left_ = 0; // the plain one before it; NaN: was not read
    Readings Kind::*to_ = nullptr;
    std::size_t sites_ = 0;
    Readings::Estimate site_ = {std::numeric_limits<double>::quiet_NaN(), 0};
};

struct Closure {
    double raw = 0;
    double calibrated = 0;
};

/// Medians of the parts of a graph against the plain replay, from its first node to its last. Outer events see more: on an
/// idle stream the wait for the launch, and the way to the first node. What that is instrumented replays tell: their outer
/// span less all that lies between their stamps, and better frames (SiteBook), which start no later than plain ones. Replays that waited for their launch are compared among themselves, and so
/// are those that did not. Answers once every part, and both spans of one kind, have `enough` readings.
class ClosureBook {
  public:
    static constexpr std::size_t enough = 3;
    explicit ClosureBook(std::size_t parts) : parts_(parts) {}
    /// Once it is known how many there are.
    void expect_parts(std::size_t parts) { parts_.resize(parts); }
    void add_part(std::uint32_t number, double raw_ns);
    /// The parts hold other stamps from now on.
    void forget_stamps();
    /// Of the medians of all parts; NaN where there are none.
    [[nodiscard]] double median_part() const;
    void add_plain(double span_ns, bool waited) { kind(waited).plain.add(span_ns); }
    /// What lies before the first stamp and behind the last of an instrumented replay.
    void add_around(double ns, bool waited) { kind(waited).around.add(ns); }
    /// The same of a frame: goes before what others tell.
    void add_framed(double ns, bool waited) { kind(waited).framed.add(ns); }
    /// Of a plain replay without the wait for its launch: by those that did not wait, else less what surrounds the stamps of
    /// instrumented ones that waited too. NaN while neither is known.
    [[nodiscard]] double plain_span() const;
    /// False while something is missing. Each part holds one stamp, of `site_cost_ns`.
    [[nodiscard]] bool closure(double site_cost_ns, Closure& result) const;

  private:
    struct Kind {
        Readings plain; // by outer events
        Readings around;
        Readings framed;
        [[nodiscard]] const Readings& surround() const { return framed.count() >= enough ? framed : around; }
        [[nodiscard]] std::size_t count() const { return std::min(plain.count(), surround().count()); }
    };
    Kind& kind(bool waited) { return waited ? waiting_ : busy_; }

    std::vector<Readings> parts_;
    Kind waiting_, busy_;
};

} // namespace plumb::cudagraph
