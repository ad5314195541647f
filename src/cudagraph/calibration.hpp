// SPDX-License-Identifier: Apache-2.0
// What a stamp costs in a replay, and whether the parts of a replay add up to the whole. Pure; bounded memory.
// Owned by one probe, which guards it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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

struct Closure {
    double raw = 0;
    double calibrated = 0;
};

/// Medians of the parts of a graph against the plain replay, from its first node to its last. Outer events see more: on an
/// idle stream the wait for the launch, and the way to the first node. What that is instrumented replays tell: their outer
/// span less all that lies between their stamps. Replays that waited for their launch are compared among themselves, and so
/// are those that did not. Answers once every part, and both spans of one kind, have `enough` readings.
class ClosureBook {
  public:
    static constexpr std::size_t enough = 3;
    explicit ClosureBook(std::size_t parts) : parts_(parts) {}
    /// Once it is known how many there are.
    void expect_parts(std::size_t parts) { parts_.resize(parts); }
    void add_part(std::uint32_t number, double raw_ns);
    void add_plain(double span_ns, bool waited) { kind(waited).plain.add(span_ns); }
    /// What lies before the first stamp and behind the last of an instrumented replay.
    void add_around(double ns, bool waited) { kind(waited).around.add(ns); }
    /// Of a plain replay without the wait for its launch: by those that did not wait, else less what surrounds the stamps of
    /// instrumented ones that waited too. NaN while neither is known.
    [[nodiscard]] double plain_span() const;
    /// False while something is missing. Each part holds one stamp, of `site_cost_ns`.
    [[nodiscard]] bool closure(double site_cost_ns, Closure& result) const;

  private:
    struct Kind {
        Readings plain; // by outer events
        Readings around;
        [[nodiscard]] std::size_t count() const { return std::min(plain.count(), around.count()); }
    };
    Kind& kind(bool waited) { return waited ? waiting_ : busy_; }

    std::vector<Readings> parts_;
    Kind waiting_, busy_;
};

} // namespace plumb::cudagraph
