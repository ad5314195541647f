// SPDX-License-Identifier: Apache-2.0
#include "analysis/thread_presence.hpp"

#include <algorithm>

namespace plumb::analysis {
namespace {

// Reading CPU time and the clock takes a fraction of a microsecond, an interrupt between them some more. More than this
// is no jitter.
constexpr std::int64_t largest_credit = 1'000'000;
constexpr std::int64_t largest_excess = 10'000'000;

} // namespace

void ThreadPresence::seen_elsewhere(std::int64_t time) {
    if (!begun_) {
        begun_ = true;
        from_ = last_ = time;
        now_ = ledger_->period_at(time, 0);
        now_ends_ = ledger_->end_of(now_);
        given_ = now_;
        return;
    }
    if (time <= last_) {
        return;
    }
    const std::size_t period = ledger_->period_at(time, now_);
    if (period > now_ + PeriodLedger::longest_reach) {
        // Silent over so many steps: the thread was not part of them, whatever it did.
        give_as_present();
        from_ = time;
        sampled_ = false;
        credit_ = 0;
    }
    now_ = period;
    now_ends_ = ledger_->end_of(now_);
    last_ = time;
}

void ThreadPresence::cpu_stamp(std::int64_t time, std::int64_t cpu_ns) {
    seen(time);
    if (time < from_) {
        return;
    }
    last_ = std::max(last_, time);
    const std::int64_t used = cpu_ns - sample_cpu_;
    const std::int64_t passed = time - sample_time_;
    if (!sampled_) {
        give_as_present();
    } else if (used < 0 || used > passed + largest_excess) {
        ++contradictions_;
        credit_ = 0;
        give_as_present();
    } else {
        const std::int64_t off_cpu = passed - used - credit_;
        credit_ = std::clamp<std::int64_t>(-off_cpu, 0, largest_credit);
        if (off_cpu > 0) {
            give_less(off_cpu, time);
        } else {
            give_as_present();
        }
    }
    sampled_ = ever_sampled_ = true;
    sample_time_ = time;
    sample_cpu_ = cpu_ns;
    from_ = time;
}

void ThreadPresence::give_before(std::int64_t time) {
    if (begun_ && from_ < time) {
        give_as_present();
    }
}

void ThreadPresence::give_as_present() {
    if (last_ > from_) {
        give(from_, last_);
    }
    from_ = std::max(from_, last_);
    leaves_.clear();
}

void ThreadPresence::give_less(std::int64_t off_cpu, std::int64_t until) {
    off_cpu = std::min(off_cpu, until - from_);
    if (!place_in_one(off_cpu, until)) {
        place_by_length(off_cpu, until);
    }
    leaves_.clear();
}

void ThreadPresence::collect_pieces(std::int64_t until) {
    pieces_.clear();
    const auto collect = [this](std::int64_t begin, std::int64_t end, std::uint64_t kind) {
        const std::uint64_t rank = kind | (end - begin >= long_ns_ ? long_rank : 0);
        pieces_.push_back({rank | static_cast<std::uint64_t>(end - begin), begin});
    };
    std::int64_t at = from_;
    for (const Interval& leaf : leaves_) {
        if (leaf.begin > at) {
            collect(at, leaf.begin, gap_rank);
        }
        collect(leaf.begin, leaf.end, 0);
        at = leaf.end;
    }
    if (until > at) {
        collect(at, until, gap_rank);
    }
}

bool ThreadPresence::place_in_one(std::int64_t off_cpu, std::int64_t until) {
    Interval long_one;
    Interval longest_gap;
    std::int64_t at = from_;
    long_ones_ = 0;
    const auto length = [](const Interval& interval) {
        return interval.end - interval.begin;
    };
    const auto look_at = [&](const Interval& interval) {
        if (length(interval) < long_ns_) {
            return;
        }
        ++long_ones_;
        long_one = interval;
    };
    for (const Interval& leaf : leaves_) {
        const Interval gap{at, leaf.begin};
        if (length(gap) > length(longest_gap)) {
            longest_gap = gap;
        }
        look_at(gap);
        look_at(leaf);
        at = leaf.end;
    }
    const Interval tail{at, until};
    if (length(tail) > length(longest_gap)) {
        longest_gap = tail;
    }
    look_at(tail);
    const bool certain = long_ones_ == 1 || off_cpu == until - from_;
    const Interval chosen = long_ones_ == 1 ? long_one : longest_gap;
    if (long_ones_ > 1 || length(chosen) < off_cpu) {
        return false;
    }
    // At its end: who waits spins first and sleeps then, and is woken to go on.
    give(from_, chosen.end - off_cpu);
    give(chosen.end, until);
    if (!certain) {
        ledger_->add(PeriodLedger::What::uncertain, {chosen.end - off_cpu, chosen.end}, given_);
    }
    return true;
}

void ThreadPresence::place_by_length(std::int64_t off_cpu, std::int64_t until) {
    collect_pieces(until);
    const auto comes_later = [](const Piece& a, const Piece& b) {
        return a.rank < b.rank;
    };
    // A heap: off-CPU time is used up by the first few pieces.
    std::make_heap(pieces_.begin(), pieces_.end(), comes_later);
    auto heap_end = pieces_.end();
    bool certain = long_ones_ == 1 || pieces_.size() == 1; // a long one is on top
    off_.clear();
    while (off_cpu > 0 && heap_end != pieces_.begin()) {
        std::pop_heap(pieces_.begin(), heap_end, comes_later);
        --heap_end;
        const std::int64_t end = heap_end->begin + heap_end->length();
        const std::int64_t part = std::min(off_cpu, heap_end->length());
        off_.push_back({end - part, end});
        off_cpu -= part;
        if (!certain) {
            ledger_->add(PeriodLedger::What::uncertain, off_.back(), given_);
        }
        certain = false;
    }
    sort_by_begin(off_);
    std::int64_t at = from_;
    for (const Interval& interval : off_) {
        give(at, interval.begin);
        at = interval.end;
    }
    give(at, until);
}

} // namespace plumb::analysis
