// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "analysis/compare_choice.hpp"
#include "analysis/loss_note.hpp"
#include "resolve/name_table.hpp"
#include "stats/median.hpp"

namespace plumb::analysis {
namespace {

using resolve::Sample;
using resolve::SampleKind;

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint16_t not_counted = std::numeric_limits<std::uint16_t>::max();
constexpr std::uint16_t not_chosen = not_counted - 1;
static_assert(compare_max_steps <= not_chosen);

/// Where a step of a recording stands in the figures of its phase. Each step of a recording has one: small.
struct StepPlace {
    std::uint16_t slot = not_counted; // among the chosen steps; not_chosen: it is in means only
    bool central = false;
};

/// The counted steps of one phase, and the time of each row in them: its sums over all of them and over the central
/// ones, and one number for each chosen step.
class PhaseSums {
  public:
    void take(const resolve::StepTable& steps, Phase phase, std::uint64_t seed, std::vector<StepPlace>& places);
    void add(StepPlace place, const CompareId& id, Category category, double ns);
    [[nodiscard]] RunPhase summary() const { return summary_; }
    void finish(std::vector<RunRow>& out) const;
    [[nodiscard]] std::uint64_t refused() const { return refused_; }
    /// Empty: all steps were chosen.
    [[nodiscard]] std::string choice() const;

  private:
    struct Series {
        Category category = Category::other;
        double total = 0, central = 0; // over all counted steps, and over the central ones
        std::vector<double> ns;        // by slot
    };
    void summarize(const resolve::StepTable& steps, const std::vector<std::size_t>& counted);
    void take_periods(std::vector<double> periods, const std::vector<std::size_t>& counted,
                      std::vector<StepPlace>& places);
    [[nodiscard]] RunRow row_of(const CompareId& id, Category category, double total, double central,
                                std::vector<double> ns) const;

    RunPhase summary_;
    RunRow step_;
    std::size_t chosen_ = 0; // of the counted steps
    double central_steps_ = 0;
    std::map<CompareId, Series> series_;
    std::uint64_t refused_ = 0;
};

void PhaseSums::take(const resolve::StepTable& steps, Phase phase, std::uint64_t seed, std::vector<StepPlace>& places) {
    std::vector<std::size_t> counted;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const resolve::ResolvedStep& step = steps[i];
        if (step.phase == phase && !step.warmup && !step.left_out) {
            counted.push_back(i);
            places[i].slot = not_chosen;
        }
    }
    summary_.steps = counted.size();
    if (counted.empty()) {
        return;
    }
    step_.id.phase = phase;
    summarize(steps, counted);
    std::vector<double> periods;
    periods.reserve(counted.size());
    for (const std::size_t index : counted) {
        periods.push_back(static_cast<double>(steps[index].end_ns - steps[index].period_begin_ns));
    }
    take_periods(std::move(periods), counted, places);
    const std::vector<std::size_t> chosen = chosen_of(std::move(counted), compare_max_steps, seed);
    chosen_ = chosen.size();
    for (std::size_t slot = 0; slot < chosen.size(); ++slot) {
        places[chosen[slot]].slot = static_cast<std::uint16_t>(slot);
    }
}

void PhaseSums::summarize(const resolve::StepTable& steps, const std::vector<std::size_t>& counted) {
    std::vector<double> kv;
    double tokens = 0;
    double sequences = 0;
    for (const std::size_t index : counted) {
        const resolve::ResolvedStep& step = steps[index];
        tokens += static_cast<double>(step.prefill_tokens) + static_cast<double>(step.decode_tokens);
        sequences += static_cast<double>(step.sequences);
        if (step.has_kv_length) {
            kv.push_back(static_cast<double>(step.kv_length));
        }
    }
    const auto n = static_cast<double>(counted.size());
    summary_.tokens_per_step = tokens / n;
    summary_.sequences_per_step = sequences / n;
    summary_.kv_length = kv.empty() ? 0 : stats::median(kv);
}

/// The row of the step; and which steps are central: the middle half by period, so that a step in which the machine did
/// something else is in no mean.
void PhaseSums::take_periods(std::vector<double> periods, const std::vector<std::size_t>& counted,
                             std::vector<StepPlace>& places) {
    std::vector<double> sorted = periods;
    std::sort(sorted.begin(), sorted.end());
    const double low = sorted[sorted.size() / 4];
    const double high = sorted[sorted.size() - 1 - sorted.size() / 4];
    double total = 0;
    double central = 0;
    for (std::size_t i = 0; i < counted.size(); ++i) {
        total += periods[i];
        if (low <= periods[i] && periods[i] <= high) {
            places[counted[i]].central = true;
            central += periods[i];
            ++central_steps_;
        }
    }
    step_ = row_of(step_.id, Category::other, total, central, std::move(periods));
}

void PhaseSums::add(StepPlace place, const CompareId& id, Category category, double ns) {
    auto found = series_.find(id);
    if (found == series_.end()) {
        if (series_.size() >= compare_max_rows) {
            ++refused_;
            return;
        }
        found = series_.emplace(id, Series{category, 0, 0, std::vector<double>(chosen_)}).first;
    }
    Series& series = found->second;
    series.total += ns;
    if (place.central) {
        series.central += ns;
    }
    if (place.slot != not_chosen) {
        series.ns[place.slot] += ns;
    }
}

RunRow PhaseSums::row_of(const CompareId& id, Category category, double total, double central,
                         std::vector<double> ns) const {
    RunRow row;
    row.id = id;
    row.category = category;
    row.mean = total / static_cast<double>(summary_.steps);
    row.central = central / central_steps_;
    std::sort(ns.begin(), ns.end());
    row.p50 = chosen_percentile(ns, 0.5, summary_.steps);
    row.p90 = chosen_percentile(ns, 0.9, summary_.steps);
    row.p99 = chosen_percentile(ns, 0.99, summary_.steps);
    return row;
}

void PhaseSums::finish(std::vector<RunRow>& out) const {
    if (summary_.steps == 0) {
        return;
    }
    out.push_back(step_);
    for (const auto& [id, series] : series_) {
        out.push_back(row_of(id, series.category, series.total, series.central, series.ns));
    }
}

std::string PhaseSums::choice() const {
    if (chosen_ == summary_.steps) {
        return {};
    }
    return "p50, p90 and p99 are of " + std::to_string(chosen_) + " of the " + std::to_string(summary_.steps) + " " +
           phase_word(step_.id.phase) +
           " steps, chosen at random, in all rows but that of the step; means are of every step.";
}

} // namespace

/// Time per step of each brick, category and layer.
class CompareReader::Sums {
  public:
    explicit Sums(const recording::RunFacts& facts)
        : names_(facts.names),
          seed_(mixed_bits(facts.metadata.recording_id[0] ^ mixed_bits(facts.metadata.recording_id[1]))) {}

    void steps_known(const resolve::StepTable& steps) {
        steps_ = &steps;
        places_.assign(steps.size(), StepPlace{});
        for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
            phases_[phase].take(steps, static_cast<Phase>(phase), seed_, places_);
        }
    }

    void consume(const resolve::ResolvedBatch& batch) {
        const recording::TrackInfo& track = batch.track->info;
        // Stamps of captured graphs and queues timed now and then are not in every counted step: see add_sampled().
        if (track.kind == recording::TrackKind::captured_graph || track.sampled_every > 1) {
            return;
        }
        const bool device = track.kind != recording::TrackKind::host_thread;
        for (const Sample& sample : batch.samples) {
            if (sample.kind != SampleKind::step && sample.kind != SampleKind::layer) {
                count(sample, device);
            }
        }
    }

    void finish(RunFigures& run) const {
        std::uint64_t refused = 0;
        for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
            run.phases[phase] = phases_[phase].summary();
            phases_[phase].finish(run.rows);
            refused += phases_[phase].refused();
            if (std::string choice = phases_[phase].choice(); !choice.empty()) {
                run.notes.push_back(std::move(choice));
            }
        }
        if (refused != 0) {
            run.notes.push_back(std::to_string(refused) + " samples are beyond the limit of " +
                                std::to_string(compare_max_rows) + " rows of a phase.");
        }
    }

  private:
    void count(const Sample& sample, bool device) {
        if (sample.step == resolve::no_step) {
            return;
        }
        if (sample.step != last_step_) {
            const std::size_t index = steps_->find(sample.step);
            last_step_ = sample.step;
            last_place_ = index == resolve::step_not_found ? StepPlace{} : places_[index];
            last_phase_ = index == resolve::step_not_found ? Phase::none : (*steps_)[index].phase;
        }
        if (last_place_.slot == not_counted) {
            return;
        }
        PhaseSums& sums = phases_[static_cast<std::size_t>(last_phase_)];
        const auto ns = static_cast<double>(sample.self_ns);
        const Category category = names_.category(sample.name);
        sums.add(last_place_, {CompareSubject::brick, last_phase_, device, text_of(sample.name), 0}, category, ns);
        sums.add(last_place_, {CompareSubject::category, last_phase_, device, category_word(category), 0}, category,
                 ns);
        if (sample.layer) {
            sums.add(last_place_, {CompareSubject::layer, last_phase_, device, "", *sample.layer}, Category::other, ns);
        }
    }

    const std::string& text_of(std::uint16_t id) {
        const auto found = texts_.find(id);
        return found != texts_.end() ? found->second : texts_.emplace(id, names_.text(id)).first->second;
    }

    resolve::NameTable names_;
    std::unordered_map<std::uint16_t, std::string> texts_;
    const resolve::StepTable* steps_ = nullptr;
    std::uint64_t seed_;
    std::vector<StepPlace> places_; // by index of step
    std::array<PhaseSums, 4> phases_;
    std::uint64_t last_step_ = resolve::no_step;
    StepPlace last_place_;
    Phase last_phase_ = Phase::none;
};

namespace {

/// Rows of captured graphs and of queues that are timed now and then: their own steps are in no step statistics, so
/// the report's figure per step stands for the run.
void add_sampled(const std::vector<Row>& rows, CompareSubject subject, std::vector<RunRow>& out) {
    std::map<CompareId, RunRow> sums; // a parent and a leaf of one name are two rows there
    for (const Row& row : rows) {
        if (row.basis == RowBasis::steps || row.key.phase == Phase::none) {
            continue;
        }
        RunRow sampled;
        sampled.id = {subject, row.key.phase, row.device, row.key.name, row.key.layer.value_or(0)};
        if (subject == CompareSubject::category) {
            sampled.id.name = category_word(row.key.category);
        }
        const double share = row.time.total_ns > 0 ? row.time.self_ns / row.time.total_ns : 1;
        RunRow& sum = sums.emplace(sampled.id, sampled).first->second;
        sum.category = row.key.category;
        sum.mean += row.sum_per_step_ns * share;
    }
    for (auto& [id, row] : sums) {
        row.p50 = row.p90 = row.p99 = none;
        row.central = row.mean;
        row.per_replay = true;
        out.push_back(row);
    }
}

/// A name that runs both eagerly and inside captured graphs has time in both. Percentiles do not add up.
void merge_equal_ids(std::vector<RunRow>& rows) {
    std::vector<RunRow> merged;
    for (RunRow& row : rows) {
        if (merged.empty() || merged.back().id != row.id) {
            merged.push_back(std::move(row));
            continue;
        }
        RunRow& sum = merged.back();
        sum.mean += row.mean;
        sum.central += row.central;
        sum.p50 = sum.p90 = sum.p99 = none;
        sum.per_replay = true;
    }
    rows = std::move(merged);
}

/// What max_size= and keep= removed was old, not lost; whole steps that were cut short are in no statistics.
std::uint64_t lost_records(const recording::Counters& counters, const resolve::Resolution& resolved) {
    using resolve::Loss;
    std::uint64_t lost = counters.unresolved + resolved.losses.unresolved();
    for (const Loss reason :
         {Loss::unknown_kind, Loss::end_without_begin, Loss::nested_too_deep, Loss::overlap_without_nesting}) {
        lost += resolved.losses.of(reason);
    }
    for (const auto& [reason, count] : counters.drops) {
        lost += reason == "tensor not checked" ? 0 : count;
    }
    return lost + damaged_records(counters, resolved.records);
}

bool has_sampled_tracks(const recording::RunFacts& facts) {
    return std::any_of(facts.tracks.begin(), facts.tracks.end(), [](const recording::TrackInfo& track) {
        return track.kind == recording::TrackKind::captured_graph || track.sampled_every > 1;
    });
}

} // namespace

CompareReader::CompareReader(const recording::RunFacts& facts, ReportReader& report)
    : facts_(facts), report_(report), sums_(std::make_unique<Sums>(facts)) {
    if (has_sampled_tracks(facts)) {
        number_ = report.ask({});
    }
}

CompareReader::~CompareReader() = default;

void CompareReader::steps_known(const resolve::StepTable& steps, const resolve::TrackTable&) {
    sums_->steps_known(steps);
}

void CompareReader::consume(const resolve::ResolvedBatch& batch) { sums_->consume(batch); }

void CompareReader::finish(const resolve::Resolution& resolution) { lost_ = lost_records(facts_.counters, resolution); }

RunFigures CompareReader::take() {
    RunFigures run;
    run.start_realtime_ns = facts_.metadata.start_realtime_ns;
    run.rank = facts_.metadata.rank;
    run.key = facts_.metadata.comparability;
    run.identity = facts_.metadata.identity;
    run.description = facts_.descriptions;
    run.notes = facts_.notes;
    run.lost = lost_;
    if (run.lost != 0) {
        run.notes.push_back(std::to_string(run.lost) +
                            " records were lost, so that a brick, category or layer may look "
                            "faster than it is; none reads FAST or SAME or passes a gate.");
    }
    sums_->finish(run);
    if (number_) {
        const Report report = report_.take(*number_);
        add_sampled(report.bricks, CompareSubject::brick, run.rows);
        add_sampled(report.categories, CompareSubject::category, run.rows);
        add_sampled(report.layers, CompareSubject::layer, run.rows);
    }
    std::sort(run.rows.begin(), run.rows.end(), [](const RunRow& a, const RunRow& b) { return a.id < b.id; });
    merge_equal_ids(run.rows);
    return run;
}

Result<RunFigures> gather_run(const recording::RecordedRun& run) {
    ReportReader report(*run.facts);
    CompareReader reader(*run.facts, report);
    std::vector<read::Observer*> observers{&reader};
    if (report.asked()) {
        observers.push_back(&report);
    }
    if (Status read = read::read(run, observers); !read.ok()) {
        return read.error();
    }
    return reader.take();
}

} // namespace plumb::analysis
