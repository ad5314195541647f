// SPDX-License-Identifier: Apache-2.0
// What a stamp costs in a replay, and whether the parts of a replay add up to the whole. Pure; bounded memory.
// Owned by one probe, which guards it.
#pragma once

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

/// Medians of the parts of a graph against the plain replay. Answers once every part and the plain replay have
/// `enough` readings.
class ClosureBook {
  public:
    static constexpr std::size_t enough = 3;
    explicit ClosureBook(std::size_t parts) : parts_(parts) {}
    void add_part(std::uint32_t number, double raw_ns);
    void add_plain(double span_ns) { plain_.add(span_ns); }
    [[nodiscard]] double plain_ns() const { return plain_.median(); }
    [[nodiscard]] std::size_t plain_count() const { return plain_.count(); }
    /// False while something is missing. Each part holds one stamp, of `site_cost_ns`.
    [[nodiscard]] bool closure(double site_cost_ns, Closure& result) const;

  private:
    std::vector<Readings> parts_;
    Readings plain_;
};

} // namespace plumb::cudagraph
