// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_builder.hpp"

#include <algorithm>
#include <limits>

#include "analysis/device_account.hpp"
#include "analysis/loss_note.hpp"
#include "analysis/no_step.hpp"
#include "analysis/own_cost.hpp"
#include "analysis/processor_counters.hpp"
#include "analysis/report_roofline.hpp"
#include "analysis/roofline.hpp"
#include "recording/drop_reasons.hpp"
#include "stats/figure.hpp"

namespace plumb::analysis {

using resolve::Sample;
using resolve::SampleKind;

namespace {

bool asked_for(const ReportOptions& options, Phase phase) { return !options.phase || *options.phase == phase; }

/// Of each phase, and of what is timed in some steps only: how many calls of a brick run at once is alike in all.
constexpr std::uint64_t most_kept_steps = 32;

/// Leaf bricks of its rows that lie in none of its periods. Of what is timed in some steps only that is not known.
double bricks_elsewhere_ns(const PhaseSummary& phase, const std::vector<Row>& categories) {
    double ns = phase.wall.bricks_outside_ns - phase.wall.sum_ns - phase.wall.bricks_idle_ns;
    for (const Row& row : categories) {
        if (row.key.phase != phase.phase || row.lap) {
            continue;
        }
        if (row.basis != RowBasis::steps) {
            return 0;
        }
        ns += row.time.total_ns;
    }
    return std::max(0.0, ns);
}

void keep_asked(const ReportOptions& options, std::vector<Row>& rows) {
    std::erase_if(rows, [&](const Row& row) { return !asked_for(options, row.key.phase); });
}

} // namespace

ReportReader::ReportReader(const recording::RunFacts& facts) : facts_(facts), names_(facts.names), graphs_(facts) {
    recorded_.first_ns = std::numeric_limits<std::int64_t>::max();
    recorded_.last_ns = std::numeric_limits<std::int64_t>::min();
}

std::size_t ReportReader::ask(const ReportOptions& options) {
    std::unique_ptr<RowTable>& rows = options.brick_layers ? layered_rows_ : plain_rows_;
    if (rows == nullptr) {
        rows = std::make_unique<RowTable>(names_, options.brick_layers);
    }
    asked_.push_back(options);
    return asked_.size() - 1;
}

void ReportReader::steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
    steps_ = &steps;
    tracks_ = &tracks;
    if (steps.empty()) {
        return;
    }
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        queues_sampled_ = queues_sampled_ || tracks[i].info.sampled_every > 1;
    }
    choose_kept_steps();
    wall_ = std::make_unique<WallClock>(
        steps,
        [this](std::size_t step, const WallSums& wall) {
            const resolve::ResolvedStep& settled = (*steps_)[step];
            phases_[static_cast<std::size_t>(settled.phase)].add(settled, wall);
            if (step == 0) {
                return;
            }
            const resolve::ResolvedStep& before = (*steps_)[step - 1];
            if (settled.begin_ns >= before.host_end_ns) {
                return;
            }
            PhaseStatistics& statistics = phases_[static_cast<std::size_t>(settled.phase)];
            if (before.phase == settled.phase) {
                statistics.add_overlapped(settled);
            } else {
                statistics.add_crossed(settled);
                phases_[static_cast<std::size_t>(before.phase)].add_crossed(before);
            }
        },
        [this](std::size_t step, const WallSums& device) {
            const resolve::ResolvedStep& settled = (*steps_)[step];
            if (!settled.warmup && (queues_sampled_ ? settled.device_timed : !settled.left_out)) {
                phases_[static_cast<std::size_t>(settled.phase)].add_device(device);
            }
        },
        observer_);
    if (observer_ != nullptr) {
        observer_->begin(steps, tracks, wall_->ledger());
    }
}

/// Evenly spread.
void ReportReader::choose_kept_steps() {
    std::array<std::array<std::uint64_t, 2>, phase_count> all{}, seen{};
    const auto of_kind = [](auto& counts, const resolve::ResolvedStep& step) -> std::uint64_t& {
        return counts[static_cast<std::size_t>(step.phase)][step.left_out ? 1 : 0];
    };
    const auto may_be_kept = [](const resolve::ResolvedStep& step) {
        return step.counted && !step.warmup && (!step.left_out || step.device_timed);
    };
    for (const resolve::ResolvedStep& step : steps_->all()) {
        of_kind(all, step) += may_be_kept(step) ? 1 : 0;
    }
    for (const resolve::ResolvedStep& step : steps_->all()) {
        if (may_be_kept(step) && of_kind(seen, step)++ % (of_kind(all, step) / most_kept_steps + 1) == 0) {
            kept_steps_.push_back(step.id);
        }
    }
    std::sort(kept_steps_.begin(), kept_steps_.end());
}

void ReportReader::keep_moments_of(std::uint64_t step) {
    last_step_ = step;
    const bool keep = std::binary_search(kept_steps_.begin(), kept_steps_.end(), step);
    for (RowTable* rows : {plain_rows_.get(), layered_rows_.get()}) {
        if (rows != nullptr) {
            rows->keep_moments(keep);
        }
    }
}

ReportReader::TrackTotals& ReportReader::totals_of(const resolve::ResolvedBatch& batch) {
    while (tracks_seen_.size() <= batch.track_index) {
        tracks_seen_.push_back(nullptr);
    }
    auto& totals = tracks_seen_[batch.track_index];
    if (!totals) {
        totals = std::make_unique<TrackTotals>();
        const recording::TrackInfo& info = batch.track->info;
        RowSource source{info.source.empty() ? "unknown" : info.source};
        source.device = info.kind != recording::TrackKind::host_thread;
        source.place = place_of_track(facts_.metadata, info);
        if (source.device) {
            devices_[backend_of(source.name)].insert(source.place.empty() ? "clock " + std::to_string(info.clock)
                                                                          : source.place);
        }
        totals->track = info.id;
        totals->graph = graphs_.of_track(info.id);
        if (totals->graph != GraphTable::none) {
            source.basis = RowBasis::replays;
        } else if (info.sampled_every > 1) {
            source.basis = RowBasis::timed_steps;
        }
        totals->basis = source.basis;
        for (RowTable* rows : {plain_rows_.get(), layered_rows_.get()}) { // both number them alike
            totals->source = rows != nullptr ? rows->source_number(source) : totals->source;
        }
    }
    return *totals;
}

void ReportReader::count(const Sample& sample, TrackTotals& totals) {
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
    outside_steps_ += brick && sample.step == resolve::no_step ? 1 : 0;
    // Of a step that has no end there is only a part: it would lower every mean it entered. Where no step has an end,
    // parts are all there is.
    if (sample.phase == Phase::none && sample.step != resolve::no_step && !steps_->empty()) {
        const auto& phaseless = steps_->phaseless();
        const bool whole = std::binary_search(phaseless.begin(), phaseless.end(), sample.step);
        (whole ? in_phaseless_steps_ : outside_complete_steps_) += brick ? 1 : 0;
        return;
    }
    // What is timed in every step is compared with counted steps; the rest has rows that say what they are made of.
    if (sample.left_out && totals.basis == RowBasis::steps) {
        return;
    }
    count_row(sample, totals);
}

void ReportReader::count_row(const Sample& sample, const TrackTotals& totals) {
    if (sample.step != last_step_) [[unlikely]] {
        keep_moments_of(sample.step);
    }
    if (totals.graph == GraphTable::none) {
        if (plain_rows_ != nullptr) {
            plain_rows_->add(sample, totals.source);
        }
        if (layered_rows_ != nullptr) {
            layered_rows_->add(sample, totals.source);
        }
        return;
    }
    if (totals.graph == GraphTable::former) {
        graphs_.left_out(totals.track);
        return;
    }
    Sample placed = sample;
    placed.leaf = graphs_.is_leaf(totals.graph, sample);
    graphs_.add(totals.graph, totals.source, placed);
    for (RowTable* rows : {plain_rows_.get(), layered_rows_.get()}) {
        if (rows != nullptr) {
            rows->add(placed, totals.source, totals.graph);
        }
    }
}

void ReportReader::count_label(const resolve::LabelValue& label) {
    const auto found = label_index_.find(label.name);
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

void ReportReader::consume(const resolve::ResolvedBatch& batch) {
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

PhaseBases ReportReader::bases() const {
    PhaseBases bases;
    bases.graphs = &graphs_;
    for (std::size_t i = 0; i < phase_count; ++i) {
        bases.steps[i] = phases_[i].base(static_cast<Phase>(i));
        bases.timed[i] = phases_[i].timed_base(static_cast<Phase>(i));
        bases.steps[i].damaged = bases.timed[i].damaged = damaged_;
    }
    return bases;
}

void ReportReader::add_rows(Report& report, const ReportOptions& options) const {
    const RowTable& rows = rows_of(options);
    const PhaseBases bases = this->bases();
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::mixed}) {
        const PhaseStatistics& statistics = phases_[static_cast<std::size_t>(phase)];
        if (!statistics.any() || !asked_for(options, phase)) {
            continue;
        }
        PhaseSummary& summary = report.phases.emplace_back(statistics.finish(phase));
        summary.all_sampled = steps_->all_disturbed(phase);
        summary.device = device_account(statistics, graphs_, phase);
        const auto graphs = graph_summaries(graphs_, rows, phase, statistics.steps());
        report.graphs.insert(report.graphs.end(), graphs.begin(), graphs.end());
    }
    report.bricks = rows.bricks(bases);
    report.layers = rows.layers(bases);
    report.categories = rows.categories(bases);
    for (PhaseSummary& summary : report.phases) {
        summary.wall.bricks_elsewhere_ns = bricks_elsewhere_ns(summary, report.categories);
    }
    if (options.brick_layers) {
        report.brick_layers = rows.brick_layers(bases);
    }
    report.graph_bricks = rows.graph_bricks(bases);
    for (auto* made :
         {&report.bricks, &report.layers, &report.categories, &report.brick_layers, &report.graph_bricks}) {
        keep_asked(options, *made);
    }
}

void ReportReader::add_tracks(Report& report) const {
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

void ReportReader::add_labels(Report& report) const {
    report.labels = labels_;
    std::sort(report.labels.begin(), report.labels.end(), [](const LabelTotal& a, const LabelTotal& b) {
        return a.total_ns != b.total_ns ? a.total_ns > b.total_ns : a.label < b.label;
    });
}

void ReportReader::add_losses(Report& report, const resolve::Resolution& resolution) const {
    const recording::Counters& counters = facts_.counters;
    const auto add = [&report](const std::string& reason, std::uint64_t count) {
        if (count != 0) {
            report.losses.push_back({reason, count});
        }
    };
    for (const auto& [reason, count] : counters.drops) {
        add(reason, count);
    }
    add("unresolved: the device never gave their time", counters.unresolved);
    for (std::size_t i = 0; i < resolve::loss_reasons; ++i) {
        add(resolve::loss_words[i], resolution.losses.of(static_cast<resolve::Loss>(i)));
    }
    report.unresolved = resolution.losses.unresolved() + counters.unresolved;
}

void ReportReader::add_notes(Report& report, const RowTable& rows, const resolve::Resolution& resolution) const {
    report.notes = facts_.notes;
    const auto add = [&report](std::string sentence) {
        report.notes.push_back(std::move(sentence));
    };
    const recording::Metadata& metadata = facts_.metadata;
    if (metadata.ring_path.empty() && !metadata.ring_reason.empty()) {
        add("Not crash-safe: " + metadata.ring_reason + ".");
    }
    for (const std::string& complaint : resolution.complaints) {
        if (std::find(report.notes.begin(), report.notes.end(), complaint) == report.notes.end()) {
            add(complaint);
        }
    }
    const std::size_t phaseless = steps_->phaseless().size();
    if (steps_->empty() && phaseless == 0) {
        add("No complete step was recorded, so there is no wall account and no figure per step; put PLUMB_STEP around each "
            "forward pass.");
    } else if (scopes_ == 0) {
        add("No brick was recorded inside the steps; put PLUMB_BRICK around the operations.");
    }
    for (const Phase phase : {Phase::prefill, Phase::decode, Phase::mixed}) {
        const PhaseStatistics& statistics = phases_[static_cast<std::size_t>(phase)];
        if (statistics.crossed()) {
            add(std::string(phase_word(phase)) + ": " + statistics.crossed_words() +
                ". A period ends where a step of any phase ends, so times per step and token and % wall of this phase are of "
                "parts of its steps.");
        }
        if (const std::uint64_t overlapped = statistics.overlapped(); overlapped != 0) {
            add(std::string(phase_word(phase)) + ": " + std::to_string(overlapped) + " of " +
                std::to_string(statistics.steps()) +
                " steps ran at the same time as the one that ended before. A period ends where any step ends, so "
                "percentiles of it are no lengths of steps; tok/s and sums are of all steps together.");
        }
    }
    if (phaseless != 0) {
        add("Steps of phase none are in no figure per step: " + std::to_string(phaseless) +
            (steps_->empty() ? ", and there are no others, so there is no wall account."
                             : "; their " + std::to_string(in_phaseless_steps_) + " scopes are in no row."));
    }
    if (outside_complete_steps_ != 0) {
        add(std::to_string(outside_complete_steps_) + " scopes belong to steps that were cut short and are in no row.");
    }
    if (outside_steps_ != 0 && !steps_->empty() && recording::lost_records(facts_.counters)) {
        add("Records were lost, so scopes outside of steps (" + std::to_string(outside_steps_) +
            ") may be of steps whose begin is among them.");
    }
    if (std::string sentence = rows.left_out(); !sentence.empty()) {
        add(std::move(sentence));
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

void ReportReader::add_clock(Report& report) const {
    const Result<resolve::TickConversion>& line = tracks_->host_line();
    for (const recording::ClockInfo& clock : facts_.metadata.clocks) {
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

Report ReportReader::make(const ReportOptions& options, const resolve::Resolution& resolution) const {
    Report report;
    report.description = facts_.descriptions;
    report.scopes = scopes_;
    report.sync_mode = facts_.metadata.sync_mode;
    report.own_cost = own_cost(facts_.metadata, facts_.counters, recorded_,
                               facts_.counters.records_removed != 0 || records_missing());
    report.peaks = peaks_of_run(facts_);
    report.counters = processor_counters(facts_.counters);
    add_rows(report, options);
    add_rooflines(report, damaged_, devices_);
    add_tracks(report);
    add_labels(report);
    add_losses(report, resolution);
    add_notes(report, rows_of(options), resolution);
    if (options.phase && report.phases.empty() && !steps_->empty()) {
        report.notes.push_back("Nothing is counted here: " + no_step_of(*options.phase) + ".");
    }
    add_clock(report);
    return report;
}

bool ReportReader::records_missing() const {
    return damaged_ || clock_jumped_ || recording::lost_records(facts_.counters);
}

void ReportReader::finish(const resolve::Resolution& resolution) {
    damaged_ = damaged_records(facts_.counters, resolution.records) != 0;
    clock_jumped_ = resolution.losses.of(resolve::Loss::clock_jumped) != 0;
    for (std::size_t i = 0; i < tracks_->size(); ++i) {
        damaged_ = damaged_ && (*tracks_)[i].cut == 0; // records that came during a reset() are in neither count
    }
    if (wall_) {
        wall_->finish();
    }
    for (const ReportOptions& options : asked_) {
        made_.push_back(make(options, resolution));
    }
    if (spread_bins_ != 0) {
        spreads_ = plain_rows_->spreads(bases(), spread_bins_);
    }
}

Result<Report> build_report(const recording::RecordedRun& run, const ReportOptions& options, const resolve::Cut& cut) {
    resolve::ResolveOptions how;
    how.warmup_steps = options.recording_warmup ? run.facts->metadata.warmup_steps : options.warmup_steps;
    how.cut = cut;
    ReportReader reader(*run.facts);
    const std::size_t number = reader.ask(options);
    if (Status read = read::read(run, {&reader}, how); !read.ok()) {
        return read.error();
    }
    return reader.take(number);
}

} // namespace plumb::analysis
