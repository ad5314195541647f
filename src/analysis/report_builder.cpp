// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_builder.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>

#include "analysis/device_account.hpp"
#include "analysis/own_cost.hpp"
#include "analysis/phase_statistics.hpp"
#include "analysis/processor_counters.hpp"
#include "analysis/report_roofline.hpp"
#include "analysis/roofline.hpp"
#include "analysis/row_table.hpp"
#include "analysis/wall_clock.hpp"
#include "resolve/resolve.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

using resolve::Sample;
using resolve::SampleKind;

constexpr std::size_t max_labels = 65536;

class Builder {
  public:
    Builder(resolve::RecordSource& source, const ReportOptions& options, PeriodObserver* observer)
        : source_(source), options_(options), observer_(observer), names_(source.names()),
          rows_(names_, options.brick_layers), graphs_(source) {}

    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks);
    void consume(const resolve::ResolvedBatch& batch);
    [[nodiscard]] Report finish(const resolve::Resolution& resolution);

  private:
    struct TrackTotals {
        unsigned source = 0;
        RowBasis basis = RowBasis::steps;
        std::uint32_t track = 0;
        std::uint32_t graph = GraphTable::none;
        std::uint64_t scopes = 0;
        std::int64_t self_ns = 0;
    };

    void count(const Sample& sample, TrackTotals& totals);
    void count_row(const Sample& sample, const TrackTotals& totals);
    void count_label(const resolve::LabelValue& label);
    TrackTotals& totals_of(const resolve::ResolvedBatch& batch);
    [[nodiscard]] bool asked_for(Phase phase) const { return !options_.phase || *options_.phase == phase; }

    void add_rows(Report& report) const;
    void add_tracks(Report& report) const;
    void add_labels(Report& report) const;
    void add_losses(Report& report, const resolve::Resolution& resolution) const;
    void add_notes(Report& report, const resolve::Resolution& resolution) const;
    void add_clock(Report& report) const;
    void keep_asked(std::vector<Row>& rows) const;

    resolve::RecordSource& source_;
    const ReportOptions& options_;
    PeriodObserver* observer_;
    resolve::NameTable names_;
    RowTable rows_;
    GraphTable graphs_;
    std::unique_ptr<WallClock> wall_; // null: no steps, no wall account
    const resolve::StepTable* steps_ = nullptr;
    const resolve::TrackTable* tracks_ = nullptr;
    bool queues_sampled_ = false; // some queue is timed in some steps only
    std::array<PhaseStatistics, phase_count> phases_;
    std::vector<std::unique_ptr<TrackTotals>> tracks_seen_; // by track index
    std::vector<LabelTotal> labels_;
    std::map<std::uint16_t, std::size_t> label_index_;
    std::uint64_t labels_refused_ = 0;
    std::uint64_t scopes_ = 0;
    std::uint64_t outside_complete_steps_ = 0;
    RecordedCounts recorded_{0, 0, 0, std::numeric_limits<std::int64_t>::max(),
                             std::numeric_limits<std::int64_t>::min()};
};

void Builder::steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
    steps_ = &steps;
    tracks_ = &tracks;
    if (steps.empty()) {
        return;
    }
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        queues_sampled_ = queues_sampled_ || tracks[i].info.sampled_every > 1;
    }
    wall_ = std::make_unique<WallClock>(
        steps,
        [this](std::size_t step, const WallSums& wall) {
            const resolve::Step& settled = (*steps_)[step];
            phases_[static_cast<std::size_t>(settled.phase)].add(settled, wall);
        },
        [this](std::size_t step, const WallSums& device) {
            const resolve::Step& settled = (*steps_)[step];
            if (!settled.warmup && (queues_sampled_ ? settled.device_timed : !settled.left_out)) {
                phases_[static_cast<std::size_t>(settled.phase)].add_device(device);
            }
        },
        observer_);
    if (observer_ != nullptr) {
        observer_->begin(steps, tracks, wall_->ledger());
    }
}

Builder::TrackTotals& Builder::totals_of(const resolve::ResolvedBatch& batch) {
    while (tracks_seen_.size() <= batch.track_index) {
        tracks_seen_.push_back(nullptr);
    }
    auto& totals = tracks_seen_[batch.track_index];
    if (!totals) {
        totals = std::make_unique<TrackTotals>();
        const recording::TrackInfo& info = batch.track->info;
        RowSource source{info.source.empty() ? "unknown" : info.source};
        source.device = info.kind != recording::TrackKind::host_thread;
        source.place = place_of_track(source_.metadata(), info);
        totals->track = info.id;
        totals->graph = graphs_.of_track(info.id);
        if (totals->graph != GraphTable::none) {
            source.basis = RowBasis::replays;
        } else if (info.sampled_every > 1) {
            source.basis = RowBasis::timed_steps;
        }
        totals->basis = source.basis;
        totals->source = rows_.source_number(source);
    }
    return *totals;
}

void Builder::count(const Sample& sample, TrackTotals& totals) {
    recorded_.first_ns = std::min(recorded_.first_ns, sample.begin_ns);
    recorded_.last_ns = std::max(recorded_.last_ns, sample.begin_ns + sample.duration_ns);
    ++(sample.kind == SampleKind::lap ? recorded_.laps : recorded_.scopes);
    if (sample.kind == SampleKind::step) {
        return;
    }
    const bool brick = sample.kind != SampleKind::layer;
    if (brick) {
        ++scopes_;
        ++totals.scopes;
        totals.self_ns += sample.self_ns;
    }
    if (sample.warmup) {
        return;
    }
    // Of a step that has no end there is only a part: it would lower every mean it entered. Where no step has an end,
    // parts are all there is.
    if (sample.phase == Phase::none && sample.step != resolve::no_step && !steps_->empty()) {
        outside_complete_steps_ += brick ? 1 : 0;
        return;
    }
    // What is timed in every step is compared with counted steps; the rest has rows that say what they are made of.
    if (sample.left_out && totals.basis == RowBasis::steps) {
        return;
    }
    count_row(sample, totals);
}

void Builder::count_row(const Sample& sample, const TrackTotals& totals) {
    if (totals.graph == GraphTable::none) {
        rows_.add(sample, totals.source);
        return;
    }
    if (totals.graph == GraphTable::former) {
        graphs_.left_out(totals.track);
        return;
    }
    Sample placed = sample;
    placed.leaf = graphs_.is_leaf(totals.graph, sample);
    graphs_.add(totals.graph, totals.source, placed);
    rows_.add(placed, totals.source, totals.graph);
}

void Builder::count_label(const resolve::LabelValue& label) {
    const auto found = label_index_.find(label.name);
    if (found == label_index_.end() && labels_.size() >= max_labels) {
        ++labels_refused_;
        return;
    }
    if (found == label_index_.end()) {
        label_index_.emplace(label.name, labels_.size());
        const auto first = static_cast<double>(label.ns);
        labels_.push_back({names_.text(label.name), 1, first, first, first});
        return;
    }
    LabelTotal& total = labels_[found->second];
    const auto value = static_cast<double>(label.ns);
    ++total.count;
    total.total_ns += value;
    total.min_ns = std::min(total.min_ns, value);
    total.max_ns = std::max(total.max_ns, value);
}

void Builder::consume(const resolve::ResolvedBatch& batch) {
    TrackTotals& totals = totals_of(batch);
    for (const Sample& sample : batch.samples) {
        count(sample, totals);
    }
    for (const resolve::LabelValue& label : batch.labels) {
        count_label(label);
    }
    for (const resolve::Submission& submission : batch.submissions) {
        graphs_.launched(submission);
    }
    recorded_.cpu_stamps += batch.cpu_stamps.size();
    if (wall_) {
        wall_->consume(batch);
    }
}

void Builder::keep_asked(std::vector<Row>& rows) const {
    rows.erase(std::remove_if(rows.begin(), rows.end(), [this](const Row& row) { return !asked_for(row.key.phase); }),
               rows.end());
}

void Builder::add_rows(Report& report) const {
    PhaseBases bases;
    bases.graphs = &graphs_;
    for (std::size_t i = 0; i < phase_count; ++i) {
        bases.steps[i] = phases_[i].base(static_cast<Phase>(i));
        bases.timed[i] = phases_[i].timed_base(static_cast<Phase>(i));
    }
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::mixed}) {
        const PhaseStatistics& statistics = phases_[static_cast<std::size_t>(phase)];
        if (!statistics.any() || !asked_for(phase)) {
            continue;
        }
        PhaseSummary& summary = report.phases.emplace_back(statistics.finish(phase));
        summary.all_sampled = steps_->all_disturbed(phase);
        summary.device = device_account(statistics, graphs_, phase);
        const auto graphs = graph_summaries(graphs_, rows_, phase, statistics.steps());
        report.graphs.insert(report.graphs.end(), graphs.begin(), graphs.end());
    }
    report.bricks = rows_.bricks(bases);
    report.layers = rows_.layers(bases);
    report.categories = rows_.categories(bases);
    if (options_.brick_layers) {
        report.brick_layers = rows_.brick_layers(bases);
    }
    report.graph_bricks = rows_.graph_bricks(bases);
    for (auto* rows :
         {&report.bricks, &report.layers, &report.categories, &report.brick_layers, &report.graph_bricks}) {
        keep_asked(*rows);
    }
}

void Builder::add_tracks(Report& report) const {
    for (std::size_t i = 0; i < tracks_->size(); ++i) {
        const resolve::Track& track = (*tracks_)[i];
        TrackSummary summary;
        summary.id = track.info.id;
        summary.name = track.info.name;
        summary.device = track.info.kind != recording::TrackKind::host_thread;
        summary.sampled_every = track.info.sampled_every;
        if (track.info.kind == recording::TrackKind::captured_graph) {
            summary.graph = track.info.graph_key;
        }
        summary.source = track.info.source;
        if (i < tracks_seen_.size() && tracks_seen_[i]) {
            summary.scopes = tracks_seen_[i]->scopes;
            summary.total_ns = static_cast<double>(tracks_seen_[i]->self_ns);
        }
        report.tracks.push_back(std::move(summary));
    }
}

void Builder::add_labels(Report& report) const {
    report.labels = labels_;
    std::sort(report.labels.begin(), report.labels.end(), [](const LabelTotal& a, const LabelTotal& b) {
        return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.label < b.label;
    });
}

void Builder::add_losses(Report& report, const resolve::Resolution& resolution) const {
    const recording::Counters& counters = source_.counters();
    const auto add = [&report](const std::string& reason, std::uint64_t count) {
        if (count != 0) {
            report.losses.push_back({reason, count});
        }
    };
    for (const auto& [reason, count] : counters.drops) {
        add(reason, count);
    }
    add("removed by max_size= or keep=", counters.records_removed);
    add("unresolved: the device never gave their time", counters.unresolved);
    for (std::size_t i = 0; i < resolve::loss_reasons; ++i) {
        add(resolve::loss_words[i], resolution.losses.of(static_cast<resolve::Loss>(i)));
    }
    add("samples beyond the limit of rows or layers", rows_.refused());
    add("graphs or sites in graphs beyond the limit", graphs_.refused());
    add("labels beyond the limit of 65536", labels_refused_);
    report.unresolved = resolution.losses.unresolved() + counters.unresolved;
}

void Builder::add_notes(Report& report, const resolve::Resolution& resolution) const {
    report.notes = source_.notes();
    const auto add = [&report](std::string sentence) {
        report.notes.push_back(std::move(sentence));
    };
    const recording::Metadata& metadata = source_.metadata();
    if (metadata.ring_path.empty() && !metadata.ring_reason.empty()) {
        add("Not crash-safe: " + metadata.ring_reason + ".");
    }
    for (const std::string& complaint : resolution.complaints) {
        add(complaint);
    }
    if (steps_->empty()) {
        add("No complete step was recorded, so there is no wall account and no figure per step; put PLUMB_STEP around each "
            "forward pass.");
    } else if (scopes_ == 0) {
        add("No brick was recorded inside the steps; put PLUMB_BRICK around the operations.");
    }
    if (outside_complete_steps_ != 0) {
        add(std::to_string(outside_complete_steps_) + " scopes belong to steps that were cut short and are in no row.");
    }
    if (wall_) {
        for (std::string& sentence : wall_->notes()) {
            add(std::move(sentence));
        }
    }
    for (std::string& sentence : device_notes(report, graphs_, names_)) {
        add(std::move(sentence));
    }
    add_peak_notes(report);
}

void Builder::add_clock(Report& report) const {
    const Result<resolve::TickLine>& line = tracks_->host_line();
    for (const recording::ClockInfo& clock : source_.metadata().clocks) {
        if (clock.id == 0) {
            report.clock.clock = clock.name;
        }
    }
    if (line.ok()) {
        report.clock.ticks_per_second = 1e9 / line->ns_per_tick();
        report.clock.residual_ns = stats::measured(line->residual_ns());
        report.clock.pairs = line->pairs();
    } else {
        report.clock.residual_ns = stats::absent("the clock could not be fitted");
    }
}

Report Builder::finish(const resolve::Resolution& resolution) {
    if (wall_) {
        wall_->finish();
    }
    Report report;
    report.description = source_.descriptions();
    report.scopes = scopes_;
    report.sync_mode = source_.metadata().sync_mode;
    report.own_cost = own_cost(source_.metadata(), source_.counters(), recorded_);
    report.peaks = source_.metadata().peaks;
    report.counters = processor_counters(source_.counters());
    add_rows(report);
    add_rooflines(report);
    add_tracks(report);
    add_labels(report);
    add_losses(report, resolution);
    add_notes(report, resolution);
    add_clock(report);
    return report;
}

} // namespace

Result<Report> build_report(resolve::RecordSource& source, const ReportOptions& options, const resolve::Cut& cut,
                            PeriodObserver* observer) {
    resolve::ResolveOptions how;
    how.warmup_steps = options.recording_warmup ? source.metadata().warmup_steps : options.warmup_steps;
    how.cut = cut;
    Builder builder(source, options, observer);
    const auto resolved = resolve::resolve(
        source, how,
        [&](const resolve::StepTable& steps, const resolve::TrackTable& tracks) { builder.steps_known(steps, tracks); },
        [&](const resolve::ResolvedBatch& batch) { builder.consume(batch); });
    if (!resolved.ok()) {
        return resolved.error();
    }
    return builder.finish(*resolved);
}

} // namespace plumb::analysis
