// SPDX-License-Identifier: Apache-2.0
#include "analysis/period_ledger.hpp"

#include <algorithm>
#include <limits>

namespace plumb::analysis {

void WallSums::add(const WallSums& other) noexcept {
    period += other.period;
    busy += other.busy;
    united += other.united;
    sum += other.sum;
    bricks_idle += other.bricks_idle;
    bricks_outside += other.bricks_outside;
    lap_union += other.lap_union;
    uncertain += other.uncertain;
    stretch += other.stretch;
}

void PeriodLedger::Page::clear() {
    bricks.clear();
    laps.clear();
    presence.clear();
    details.clear();
    complete = true;
    uncertain = 0;
    bricks_outside = 0;
}

PeriodLedger::PeriodLedger(const resolve::StepTable& steps, Settled settled)
    : steps_(steps), settled_(std::move(settled)) {}

std::size_t PeriodLedger::period_at(std::int64_t time, std::size_t hint) const noexcept {
    const auto& all = steps_.all();
    const auto ends_after = [&](std::size_t i) {
        return i == all.size() || time < all[i].end_ns;
    };
    // Tracks move forward in time, so the answer is nearly always the hint or just after it.
    if (hint <= all.size() && (hint == 0 || !ends_after(hint - 1))) {
        for (std::size_t i = hint; i <= all.size() && i < hint + 4; ++i) {
            if (ends_after(i)) {
                return i;
            }
        }
    }
    const auto found =
        std::upper_bound(all.begin(), all.end(), time,
                         [](std::int64_t at, const resolve::ResolvedStep& step) { return at < step.end_ns; });
    return static_cast<std::size_t>(found - all.begin());
}

template <class Each>
bool PeriodLedger::clip(Interval interval, bool any_reach, std::size_t& hint, Each&& each) {
    const std::size_t first = period_at(interval.begin, hint);
    hint = first;
    if (interval.end <= interval.begin) {
        return true;
    }
    const std::size_t farthest = first + longest_reach;
    if (!any_reach && farthest < steps_.size() && steps_[farthest].end_ns < interval.end) {
        return false;
    }
    for (std::size_t i = first; i < steps_.size(); ++i) {
        const resolve::ResolvedStep& step = steps_[i];
        if (step.period_begin_ns >= interval.end) {
            break;
        }
        const Interval part{std::max(interval.begin, step.period_begin_ns), std::min(interval.end, step.end_ns)};
        if (part.end > part.begin) {
            each(part, i);
        }
        if (interval.end <= step.end_ns) {
            break;
        }
    }
    return true;
}

void PeriodLedger::add_anywhere(What what, Interval interval, std::size_t& hint, std::uint32_t track, Phase of) {
    const bool taken = clip(interval, what == What::presence, hint,
                            [&](Interval part, std::size_t period) { put_in(period, what, part, track, of); });
    left_out_ += taken ? 0 : 1;
}

void PeriodLedger::add_where_timed(What what, Interval interval, std::size_t& hint, std::uint32_t track, Phase of) {
    const bool taken = clip(interval, what == What::presence, hint, [&](Interval part, std::size_t period) {
        const resolve::ResolvedStep& step = steps_[period];
        if (step.left_out || step.device_timed || steps_.all_disturbed(step.phase)) {
            put_in(period, what, part, track, of);
        }
    });
    left_out_ += taken ? 0 : 1;
}

void PeriodLedger::add_detail(const Detail& detail, std::size_t& hint) {
    const bool taken = clip(detail.interval, false, hint,
                            [&](Interval part, std::size_t period) { put_detail(detail, part, period); });
    details_left_out_ += taken ? 0 : 1;
}

void PeriodLedger::put_detail(const Detail& detail, Interval clipped, std::size_t period) {
    if (period < next_) {
        ++details_left_out_;
        return;
    }
    Page& page = page_of(period);
    if (pending_details_ >= max_details) {
        page.complete = false;
        return;
    }
    page.details.push_back(detail);
    page.details.back().interval = clipped;
    ++pending_details_;
}

void PeriodLedger::put_in(std::size_t period, What what, Interval clipped, std::uint32_t track, Phase of) {
    if (period < next_ || pending_ >= max_pending) {
        ++left_out_;
        if (period >= next_ && observer_ != nullptr) {
            page_of(period).complete = false;
        }
        return;
    }
    put(page_of(period), what, clipped.begin, clipped.end, of != steps_[period].phase);
    if (observer_ == nullptr || what == What::uncertain || !(brick_details_ || what == What::presence)) {
        return;
    }
    const Detail::Kind kind = what == What::brick ? Detail::Kind::brick
                              : what == What::lap ? Detail::Kind::lap
                                                  : Detail::Kind::presence;
    put_detail({clipped, kind, 0, track, 0}, clipped, period);
}

std::int64_t PeriodLedger::end_of(std::size_t period) const noexcept {
    return period < steps_.size() ? steps_[period].end_ns : std::numeric_limits<std::int64_t>::max();
}

PeriodLedger::Page& PeriodLedger::page_of(std::size_t period) {
    if (last_page_ != nullptr && period == last_put_) [[likely]] {
        return *last_page_;
    }
    while (open_.size() <= period - next_) {
        open_.push_back(nullptr);
    }
    auto& page = open_[period - next_];
    if (!page && !spare_.empty()) {
        page = std::move(spare_.back());
        spare_.pop_back();
    } else if (!page) {
        page = std::make_unique<Page>();
    }
    last_page_ = page.get();
    last_put_ = period;
    last_begin_ = steps_[period].period_begin_ns;
    last_end_ = steps_[period].end_ns;
    last_phase_ = steps_[period].phase;
    return *page;
}

std::size_t PeriodLedger::settled_until(std::int64_t no_earlier_than) const noexcept {
    // Something that ends later than step i + reach began after step i ended, or reaches too far to count.
    std::size_t until = next_;
    while (until < steps_.size() &&
           steps_[std::min(until + longest_reach, steps_.size() - 1)].end_ns < no_earlier_than) {
        ++until;
    }
    return until;
}

std::int64_t PeriodLedger::horizon(std::int64_t no_earlier_than) const noexcept {
    const std::size_t until = settled_until(no_earlier_than);
    return until == next_ ? std::numeric_limits<std::int64_t>::min() : steps_[until - 1].end_ns;
}

void PeriodLedger::settle(std::int64_t no_earlier_than) {
    const std::size_t until = settled_until(no_earlier_than);
    while (next_ < until) {
        settle_next();
    }
}

void PeriodLedger::settle_all() {
    while (next_ < steps_.size()) {
        settle_next();
    }
}

void PeriodLedger::sum_up(Page& page, WallSums& sums) {
    sort_by_begin(page.presence);
    unite(page.presence, busy_);
    sums.busy = length_of(busy_);
    sums.stretch = busy_.empty() ? 0 : busy_.back().end - busy_.front().begin;
    sort_by_begin(page.bricks);
    unite(page.bricks, united_);
    sums.united = shared_length(united_, busy_);
    sums.sum = sum_inside(page.bricks, busy_);
    sums.bricks_idle = length_of(page.bricks) - sums.sum;
    sums.bricks_outside = page.bricks_outside;
    if (!page.laps.empty()) {
        scratch_ = united_;
        scratch_.insert(scratch_.end(), page.laps.begin(), page.laps.end());
        sort_by_begin(scratch_);
        unite(scratch_, with_laps_);
        sums.lap_union = shared_length(with_laps_, busy_) - sums.united;
    }
    sums.uncertain = std::min(page.uncertain, sums.period); // threads add up, but no figure is off by more
}

void PeriodLedger::settle_next() {
    const resolve::ResolvedStep& step = steps_[next_];
    last_page_ = nullptr;
    WallSums sums;
    sums.period = step.end_ns - step.period_begin_ns;
    std::unique_ptr<Page> page;
    if (!open_.empty()) {
        page = std::move(open_.front());
        open_.pop_front();
    }
    if (!page && observer_ != nullptr) {
        page = std::make_unique<Page>();
    }
    if (page) {
        sum_up(*page, sums);
        pending_ -= page->bricks.size() + page->laps.size() + page->presence.size();
        pending_details_ -= page->details.size();
        if (observer_ != nullptr) {
            observer_->settled(next_, sums, page->details, page->complete);
        }
        page->clear();
        if (spare_.size() < 2 * longest_reach) {
            spare_.push_back(std::move(page));
        }
    }
    settled_(next_, sums);
    ++next_;
}

} // namespace plumb::analysis
