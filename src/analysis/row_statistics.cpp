// SPDX-License-Identifier: Apache-2.0
#include "analysis/row_statistics.hpp"

#include "analysis/loss_note.hpp"
#include "plumb/backend.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {

void RowStatistics::Quantity::merge(const Quantity& other) {
    sum += other.sum;
    time_ns += other.time_ns;
    count += other.count;
}

Figure RowStatistics::Quantity::per_call(const char* name, bool damaged) const {
    if (count == 0) {
        return not_given(name, damaged);
    }
    return stats::measured(sum / static_cast<double>(count));
}

Figure RowStatistics::Quantity::rate(const char* name, double scale, bool damaged) const {
    if (count == 0) {
        return not_given(name, damaged);
    }
    if (time_ns <= 0) {
        return stats::absent("shorter than the clock can tell");
    }
    return stats::measured(sum / static_cast<double>(time_ns) / scale); // units per ns = 10^9 units per s
}

void RowStatistics::merge(const RowStatistics& other) {
    time_.merge(other.time_);
    launch_wait_ += other.launch_wait_;
    below_floor_ += other.below_floor_;
    may_overlap_ += other.may_overlap_;
    cut_ += other.cut_;
    bytes_.merge(other.bytes_);
    flops_.merge(other.flops_);
    elements_.merge(other.elements_);
    barrier_wait_.merge(other.barrier_wait_);
    kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
}

Figure RowStatistics::calls_at_once() const {
    std::vector<Interval> calls = kept_, together;
    sort_by_begin(calls);
    unite(calls, together);
    const auto ran = static_cast<double>(length_of(together));
    return ran > 0 ? stats::measured(static_cast<double>(length_of(calls)) / ran)
                   : stats::absent("no sample lies in the steps of which the moments are kept");
}

void RowStatistics::add_flags(unsigned flags) {
    launch_wait_ += (flags & span_includes_launch_wait) != 0 ? 1 : 0;
    below_floor_ += (flags & span_below_floor) != 0 ? 1 : 0;
    may_overlap_ += (flags & span_may_overlap) != 0 ? 1 : 0;
    cut_ += (flags & span_cut_by_neighbour) != 0 ? 1 : 0;
}

Row RowStatistics::finish(RowKey key, const PhaseBase& base) const {
    Row row;
    row.key = std::move(key);
    row.time = time_.finish();
    row.launch_wait = launch_wait_;
    row.below_floor = below_floor_;
    row.may_overlap = may_overlap_;
    row.cut_by_neighbour = cut_;
    row.calls_at_once = calls_at_once();
    row.raw_sum_per_step_ns = stats::absent("not inside a captured graph");
    if (base.steps != 0) {
        row.calls_per_step = static_cast<double>(row.time.count) / static_cast<double>(base.steps);
        row.sum_per_step_ns = row.time.total_ns / static_cast<double>(base.steps);
    }
    if (base.steps == 0) {
        row.wall_share = stats::absent(base.reason);
    } else if (!(base.period_ns > 0)) {
        row.wall_share = stats::absent("the steps took no time on this clock");
    } else {
        row.wall_share = stats::measured(row.time.total_ns / base.period_ns);
    }
    row.gigabytes_per_second = bytes_.rate("bytes", 1, base.damaged);
    row.teraflops = flops_.rate("flops", 1000, base.damaged);
    row.bytes_per_call = bytes_.per_call("bytes", base.damaged);
    row.flops_per_call = flops_.per_call("flops", base.damaged);
    row.elements_per_call = elements_.per_call("elements", base.damaged);
    if (barrier_wait_.time_ns > 0) {
        row.barrier_wait_share = stats::measured(barrier_wait_.sum / static_cast<double>(barrier_wait_.time_ns));
    } else {
        row.barrier_wait_share = stats::absent("waiting at a barrier was not recorded");
    }
    if (!row.bytes_per_call.value) {
        row.bytes_per_step = row.bytes_per_call;
    } else if (base.steps == 0) {
        row.bytes_per_step = stats::absent(base.reason);
    } else {
        row.bytes_per_step = stats::measured(bytes_.sum / static_cast<double>(base.steps));
    }
    return row;
}

} // namespace plumb::analysis
