// SPDX-License-Identifier: Apache-2.0
// What one row sums up, and how it becomes a plumb::Row. Owned by a row table; one thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "analysis/interval.hpp"
#include "plumb/results.hpp"
#include "resolve/sample.hpp"
#include "stats/distribution.hpp"

namespace plumb::analysis {

/// Steps and wall clock of one phase, which rows are compared with.
struct PhaseBase {
    std::uint64_t steps = 0;
    double period_ns = 0;
    std::string reason;   // why there is no share of the wall, when there are no steps
    bool damaged = false; // records are missing
};

class RowStatistics {
  public:
    explicit RowStatistics(stats::BlockBudget* budget) : time_(budget) {}

    void add(const resolve::Sample& sample) {
        time_.add(static_cast<std::uint64_t>(sample.duration_ns), static_cast<std::uint64_t>(sample.self_ns));
        bytes_.add(sample.bytes, sample.duration_ns);
        flops_.add(sample.flops, sample.duration_ns);
        elements_.add(sample.elements, sample.duration_ns);
        barrier_wait_.add(sample.barrier_wait_ns, sample.duration_ns);
        if (sample.flags != 0) [[unlikely]] {
            add_flags(sample.flags);
        }
    }
    /// Also when that one was.
    void keep(const resolve::Sample& sample) {
        kept_.push_back({sample.begin_ns, sample.begin_ns + sample.duration_ns});
    }
    void merge(const RowStatistics& other);
    [[nodiscard]] std::uint64_t count() const noexcept { return time_.moments().count(); }
    [[nodiscard]] Row finish(RowKey key, const PhaseBase& base) const;
    [[nodiscard]] const stats::DurationStatistics& time() const noexcept { return time_; }

  private:
    // A quantity over the samples that gave it: rates divide by their time, not by that of the others.
    struct Quantity {
        double sum = 0;
        std::int64_t time_ns = 0;
        std::uint64_t count = 0;

        void add(double value, std::int64_t duration_ns) {
            if (std::isnan(value)) {
                return;
            }
            sum += value;
            time_ns += duration_ns;
            ++count;
        }
        void merge(const Quantity& other);
        [[nodiscard]] Figure per_call(const char* name, bool damaged) const;
        /// In units of 1e9 * scale per second.
        [[nodiscard]] Figure rate(const char* name, double scale, bool damaged) const;
    };

    void add_flags(unsigned flags);
    [[nodiscard]] Figure calls_at_once() const;

    stats::DurationStatistics time_;
    std::uint64_t launch_wait_ = 0, below_floor_ = 0, may_overlap_ = 0, cut_ = 0;
    Quantity bytes_, flops_, elements_, barrier_wait_;
    std::vector<Interval> kept_;
};

} // namespace plumb::analysis
