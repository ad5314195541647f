// SPDX-License-Identifier: Apache-2.0
// The wall clock, period by period: collects what happened in each period between step ends, from all tracks in any
// order, and settles a period's account as soon as nothing that belongs to it can still come. Owned by one report; one
// thread. Memory: the periods not settled yet, bounded.
// Invariants, in whole nanoseconds: union + unattributed = busy, busy + idle = period, sum - union = overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "analysis/interval.hpp"
#include "analysis/period_observer.hpp"
#include "resolve/step_table.hpp"

namespace plumb::analysis {

/// Sums over periods, in nanoseconds.
struct WallSums {
    std::int64_t period = 0, busy = 0, united = 0, sum = 0, lap_union = 0, uncertain = 0;
    std::int64_t bricks_idle = 0;    // of the leaf bricks of `sum`, beyond busy
    std::int64_t bricks_outside = 0; // of all leaf bricks here: those in no row of this phase
    std::int64_t stretch = 0;        // from the first moment of presence to the last

    [[nodiscard]] std::int64_t idle() const noexcept { return period - busy; }
    [[nodiscard]] std::int64_t unattributed() const noexcept { return busy - united; }
    [[nodiscard]] std::int64_t overlap() const noexcept { return sum - united; }
    void add(const WallSums& other) noexcept;
};

class PeriodLedger {
  public:
    /// Intervals that reach over more step ends than this belong to no forward pass: they are left out.
    static constexpr std::size_t longest_reach = 8;
    static constexpr std::size_t max_pending = std::size_t{1} << 21;
    static constexpr std::size_t max_details = std::size_t{1} << 22;

    enum class What : std::uint8_t {
        brick,     // a leaf brick ran
        lap,       // a lap ran
        presence,  // a tracked thread was on the CPU
        uncertain, // off-CPU time whose place is a convention; threads add up to at most the period
    };
    using Settled = std::function<void(std::size_t step, const WallSums&)>;

    PeriodLedger(const resolve::StepTable& steps, Settled settled);

    /// Index of the period that holds this moment: the first step that ends after it (steps.size(): none does).
    [[nodiscard]] std::size_t period_at(std::int64_t time, std::size_t hint) const noexcept;
    /// End of a period; the end of time for one past the last.
    [[nodiscard]] std::int64_t end_of(std::size_t period) const noexcept;
    /// `hint`: a period near it, updated. `track`: whose it is, for the observer. `of`: for bricks, in the rows of which phase
    /// they are.
    void add(What what, Interval interval, std::size_t& hint, std::uint32_t track = 0, Phase of = Phase::none) {
        add(what, interval.begin, interval.end, hint, track, of);
    }
    // Two numbers: an Interval comes in two registers, is stored in halves and loaded as a whole, which takes 5 ns.
    [[gnu::always_inline]] void add(What what, std::int64_t begin, std::int64_t end, std::size_t& hint,
                                    std::uint32_t track = 0, Phase of = Phase::none) {
        // Nearly always it lies in the period that the one before it lay in, and nobody wants to know more.
        const bool near = last_page_ != nullptr && last_begin_ <= begin && begin < end && end <= last_end_ &&
                          pending_ < max_pending && observer_ == nullptr;
        if (!near) [[unlikely]] {
            add_anywhere(what, {begin, end}, hint, track, of);
            return;
        }
        hint = last_put_;
        put(*last_page_, what, begin, end, of != last_phase_);
    }
    /// As add(), of a track that is timed in some steps only: what it did outside of their periods says nothing there.
    void add_where_timed(What what, Interval interval, std::size_t& hint, std::uint32_t track, Phase of);
    /// From now on the intervals of a period are kept as details too, for this observer. Null: for nobody.
    void observe(PeriodObserver* observer) noexcept { observer_ = observer; }
    /// Whether bricks and laps are among the details (they are, unless somebody says no).
    void keep_brick_details(bool keep) noexcept { brick_details_ = keep; }
    /// Something that only the observer wants.
    void add_detail(const Detail& detail, std::size_t& hint);

    /// First moment whose period is still open after settle(no_earlier_than).
    [[nodiscard]] std::int64_t horizon(std::int64_t no_earlier_than) const noexcept;
    /// Settles every period of which all is known, given that nothing added later ends before `no_earlier_than`.
    void settle(std::int64_t no_earlier_than);
    void settle_all();

    /// Intervals left out: too late, or too many waiting.
    [[nodiscard]] std::uint64_t left_out() const noexcept { return left_out_; }
    [[nodiscard]] std::uint64_t details_left_out() const noexcept { return details_left_out_; }

  private:
    struct Page {
        std::vector<Interval> bricks, laps, presence;
        std::vector<Detail> details;
        bool complete = true; // no detail was left out for want of room
        std::int64_t uncertain = 0;
        std::int64_t bricks_outside = 0;
        void clear();
    };

    void add_anywhere(What what, Interval interval, std::size_t& hint, std::uint32_t track, Phase of);
    void put(Page& page, What what, std::int64_t begin, std::int64_t end, bool outside) {
        if (what == What::uncertain) {
            page.uncertain += end - begin;
            return;
        }
        page.bricks_outside += what == What::brick && outside ? end - begin : 0;
        (what == What::brick ? page.bricks : what == What::lap ? page.laps : page.presence).push_back({begin, end});
        ++pending_;
    }

    [[nodiscard]] std::size_t settled_until(std::int64_t no_earlier_than) const noexcept;
    void put_detail(const Detail& detail, Interval clipped, std::size_t period);
    void put_in(std::size_t period, What what, Interval clipped, std::uint32_t track, Phase of);
    void sum_up(Page& page, WallSums& sums);
    /// Calls `each` with the part in every period; false where it reaches over too many.
    template <class Each>
    bool clip(Interval interval, bool any_reach, std::size_t& hint, Each&& each);
    Page& page_of(std::size_t period);
    void settle_next();

    const resolve::StepTable& steps_;
    Settled settled_;
    std::deque<std::unique_ptr<Page>> open_; // of periods next_, next_ + 1, …; null where nothing came yet
    std::vector<std::unique_ptr<Page>> spare_;
    Page* last_page_ = nullptr; // of period last_put_, while it is open
    std::size_t last_put_ = 0;
    std::int64_t last_begin_ = 0, last_end_ = 0; // of that period
    Phase last_phase_ = Phase::none;
    std::size_t next_ = 0;
    std::size_t pending_ = 0;
    std::size_t pending_details_ = 0;
    std::uint64_t left_out_ = 0;
    std::uint64_t details_left_out_ = 0;
    PeriodObserver* observer_ = nullptr;
    bool brick_details_ = true;
    std::vector<Interval> busy_, united_, with_laps_, scratch_;
};

} // namespace plumb::analysis
