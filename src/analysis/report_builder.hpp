// SPDX-License-Identifier: Apache-2.0
// A recorded run -> Reports: whatever is made of rows and of the account of the wall clock reads along with this one. Pure: the
// same records give the same report. Partial recordings give partial reports that say what is missing. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "analysis/graph_table.hpp"
#include "analysis/own_cost.hpp"
#include "analysis/period_observer.hpp"
#include "analysis/phase_statistics.hpp"
#include "analysis/report_roofline.hpp"
#include "analysis/row_table.hpp"
#include "analysis/wall_clock.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"
#include "read/read.hpp"
#include "resolve/name_table.hpp"

namespace plumb::analysis {

class ReportReader final : public read::Observer {
  public:
    /// REQUIRES: the facts outlive it.
    explicit ReportReader(const recording::RunFacts& facts);

    /// Before the reading: one more report of the same samples. Its number is for take(). The steps of warm-up are those
    /// of the reading, whatever the options say.
    std::size_t ask(const ReportOptions& options);
    [[nodiscard]] bool asked() const noexcept { return !asked_.empty(); }
    /// Before the reading: who is told what each period is made of.
    void observe(PeriodObserver& observer) noexcept { observer_ = &observer; }
    /// Before the reading: a report, and how the times of each of its bricks are spread, in so many bins. Its number is for take().
    std::size_t ask_spreads(std::size_t bins) {
        spread_bins_ = bins;
        return ask({});
    }
    /// After it, once.
    [[nodiscard]] std::vector<RowSpread> take_spreads() { return std::move(spreads_); }
    /// After it, once for each number.
    [[nodiscard]] Report take(std::size_t number) { return std::move(made_[number]); }
    /// After it: damaged, or without room; what a limit removed is old and not missing.
    [[nodiscard]] bool records_missing() const;
    /// Why the periods of a phase make no rate: its steps cross those of another. Empty: they do not.
    [[nodiscard]] std::string crossed_words(Phase phase) const {
        const PhaseStatistics& statistics = phases_[static_cast<std::size_t>(phase)];
        return statistics.crossed() ? statistics.crossed_words() : std::string();
    }

    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) override;
    void consume(const resolve::ResolvedBatch& batch) override;
    void finish(const resolve::Resolution& resolution) override;

  private:
    struct TrackTotals {
        unsigned source = 0;
        RowBasis basis = RowBasis::steps;
        std::uint32_t track = 0;
        std::uint32_t graph = GraphTable::none;
        std::uint64_t scopes = 0;
        std::int64_t self_ns = 0;
    };

    void choose_kept_steps();
    void keep_moments_of(std::uint64_t step);
    void count(const resolve::Sample& sample, TrackTotals& totals);
    void count_row(const resolve::Sample& sample, const TrackTotals& totals);
    void count_label(const resolve::LabelValue& label);
    TrackTotals& totals_of(const resolve::ResolvedBatch& batch);
    [[nodiscard]] const RowTable& rows_of(const ReportOptions& options) const {
        return options.brick_layers ? *layered_rows_ : *plain_rows_;
    }

    [[nodiscard]] Report make(const ReportOptions& options, const resolve::Resolution& resolution) const;
    [[nodiscard]] PhaseBases bases() const;
    void add_rows(Report& report, const ReportOptions& options) const;
    void add_tracks(Report& report) const;
    void add_labels(Report& report) const;
    void add_losses(Report& report, const resolve::Resolution& resolution) const;
    void add_notes(Report& report, const RowTable& rows, const resolve::Resolution& resolution) const;
    void add_clock(Report& report) const;

    const recording::RunFacts& facts_;
    PeriodObserver* observer_ = nullptr;
    resolve::NameTable names_;
    // Apart, because rows of bricks in layers use up what a table may hold.
    std::unique_ptr<RowTable> plain_rows_, layered_rows_; // null: nobody asked
    std::vector<ReportOptions> asked_;
    std::vector<Report> made_;    // by number
    std::size_t spread_bins_ = 0; // 0: nobody asked
    std::vector<RowSpread> spreads_;
    GraphTable graphs_;
    std::unique_ptr<WallClock> wall_;           // null: no steps, no wall account
    const resolve::StepTable* steps_ = nullptr; // during the reading, as the next
    const resolve::TrackTable* tracks_ = nullptr;
    bool queues_sampled_ = false; // some queue is timed in some steps only
    std::array<PhaseStatistics, phase_count> phases_;
    std::vector<std::uint64_t> kept_steps_; // ids, sorted: when their samples were is kept
    std::uint64_t last_step_ = resolve::no_step;
    std::vector<std::unique_ptr<TrackTotals>> tracks_seen_; // by track index
    DevicesOfBackends devices_;                             // with samples
    std::vector<LabelTotal> labels_;
    std::map<std::uint16_t, std::size_t> label_index_;
    bool damaged_ = false; // records are missing
    bool clock_jumped_ = false;
    std::uint64_t scopes_ = 0;
    std::uint64_t outside_complete_steps_ = 0, in_phaseless_steps_ = 0; // scopes
    std::uint64_t outside_steps_ = 0;                                   // scopes
    RecordedCounts recorded_;
};

/// `cut`: what a live run cleared by reset(); steps begun before it do not count.
[[nodiscard]] Result<Report> build_report(const recording::RecordedRun& run, const ReportOptions& options,
                                          const resolve::Cut& cut = {});

} // namespace plumb::analysis
