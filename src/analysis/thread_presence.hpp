// SPDX-License-Identifier: Apache-2.0
// When one host thread was on the CPU: from its leaf scopes and its samples of CPU time, in the order of its stream.
// docs/reference/accuracy.md states where off-CPU time is placed. Owned by one report; one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "analysis/interval.hpp"
#include "analysis/period_ledger.hpp"

namespace plumb::analysis {

class ThreadPresence {
  public:
    /// Leaf scopes remembered between two samples of CPU time; beyond it the stretch so far counts as on the CPU.
    static constexpr std::size_t max_pieces = 65536;

    /// `long_ns`: a scope or gap at least this long has a sample of CPU time right behind it.
    ThreadPresence(PeriodLedger& ledger, std::int64_t long_ns, std::uint32_t track)
        : ledger_(&ledger), long_ns_(long_ns), track_(track) {}

    /// A leaf scope or lap that ended.
    [[gnu::always_inline]] void leaf(Interval interval) {
        seen(interval.begin);
        seen(interval.end);
        const std::int64_t behind = leaves_.empty() ? from_ : std::max(from_, leaves_.back().end);
        interval.begin = std::max(interval.begin, behind);
        if (interval.end > interval.begin) {
            leaves_.push_back(interval);
        }
        if (leaves_.size() >= max_pieces) [[unlikely]] {
            give_as_present();
        }
    }
    /// Any other record of the thread.
    void seen(std::int64_t time) {
        if (begun_ && time < now_ends_) [[likely]] {
            last_ = std::max(last_, time);
        } else {
            seen_elsewhere(time);
        }
    }
    void cpu_stamp(std::int64_t time, std::int64_t cpu_ns);

    /// What is known of time before `time` goes to the ledger now, before the ledger settles it.
    void give_before(std::int64_t time);
    void give_all() { give_as_present(); }

    [[nodiscard]] bool sampled() const noexcept { return ever_sampled_; }
    [[nodiscard]] std::uint64_t contradictions() const noexcept { return contradictions_; }

  private:
    /// As small as can be: a heap of them is most of what placing off-CPU time costs.
    struct Piece {
        std::uint64_t rank; // long ones before short ones, gaps before leaves, then by length: the highest goes first
        std::int64_t begin;
        [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(rank & (gap_rank - 1)); }
    };
    static constexpr std::uint64_t gap_rank = std::uint64_t{1} << 62;
    static constexpr std::uint64_t long_rank = std::uint64_t{1} << 63;

    /// First of all, or in another period.
    void seen_elsewhere(std::int64_t time);
    void give_as_present();
    void give_less(std::int64_t off_cpu, std::int64_t until);
    void collect_pieces(std::int64_t until);
    /// Into the one long piece, or the longest gap where nothing is long; false when it does not fit there.
    [[nodiscard]] bool place_in_one(std::int64_t off_cpu, std::int64_t until);
    void place_by_length(std::int64_t off_cpu, std::int64_t until);
    void give(std::int64_t begin, std::int64_t end) {
        ledger_->add(PeriodLedger::What::presence, {begin, end}, given_, track_);
    }

    PeriodLedger* ledger_;
    std::int64_t long_ns_;
    std::uint32_t track_; // dense index
    bool begun_ = false;
    std::int64_t from_ = 0;        // presence is known, and given, before this
    std::int64_t last_ = 0;        // of the thread's stamps
    std::vector<Interval> leaves_; // after from_, disjoint, in order
    std::vector<Piece> pieces_;
    std::vector<Interval> off_;
    std::size_t long_ones_ = 0; // in the stretch looked at last
    bool sampled_ = false;      // sample_* hold
    bool ever_sampled_ = false;
    std::int64_t sample_time_ = 0;
    std::int64_t sample_cpu_ = 0;
    std::int64_t credit_ = 0; // CPU time that earlier stretches had too much, by the jitter of reading two clocks
    std::size_t now_ = 0;     // period of last_
    std::int64_t now_ends_ = 0;
    std::size_t given_ = 0; // hint for the ledger
    std::uint64_t contradictions_ = 0;
};

} // namespace plumb::analysis
