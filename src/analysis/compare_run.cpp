// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare_run.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "analysis/loss_note.hpp"
#include "resolve/name_table.hpp"
#include "stats/median.hpp"

namespace plumb::analysis {
namespace {

using resolve::Sample;
using resolve::SampleKind;

constexpr double none = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint32_t not_taken = std::numeric_limits<std::uint32_t>::max();

/// Sorted values -> percentile, or NaN where there are too few (n < 10 / (1 - share)).
double percentile(const std::vector<double>& sorted, double share) {
    const auto n = static_cast<double>(sorted.size());
    if (n * (1 - share) < 10 - 1e-9) {
        return none;
    }
    const double at = share * (n - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// The counted steps of one phase that are looked at, and the time of each row in each of them.
class PhaseSums {
  public:
    void take(const resolve::StepTable& steps, Phase phase);
    void add(std::uint32_t slot, const CompareId& id, Category category, double ns);
    [[nodiscard]] RunPhase summary() const { return summary_; }
    void finish(Phase phase, std::vector<RunRow>& out) const;
    [[nodiscard]] std::uint64_t refused() const { return refused_; }
    [[nodiscard]] const std::vector<std::size_t>& taken() const { return taken_; }

  private:
    struct Series {
        Category category = Category::other;
        std::vector<double> ns; // by slot
    };
    [[nodiscard]] std::vector<bool> central_slots() const;
    [[nodiscard]] static RunRow row_of(const CompareId& id, const Series& series, const std::vector<bool>& central);

    RunPhase summary_;
    std::vector<std::size_t> taken_; // indices of steps
    std::vector<double> period_;     // by slot
    std::map<CompareId, Series> series_;
    std::uint64_t refused_ = 0;
};

void PhaseSums::take(const resolve::StepTable& steps, Phase phase) {
    std::vector<std::size_t> counted;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const resolve::ResolvedStep& step = steps[i];
        if (step.phase == phase && !step.warmup && !step.left_out) {
            counted.push_back(i);
        }
    }
    summary_.steps = counted.size();
    if (counted.empty()) {
        return;
    }
    const std::size_t stride = (counted.size() + compare_max_steps - 1) / compare_max_steps;
    std::vector<double> kv;
    double tokens = 0;
    double sequences = 0;
    for (std::size_t i = 0; i < counted.size(); i += stride) {
        const resolve::ResolvedStep& step = steps[counted[i]];
        taken_.push_back(counted[i]);
        period_.push_back(static_cast<double>(step.end_ns - step.period_begin_ns));
        tokens += static_cast<double>(step.prefill_tokens) + static_cast<double>(step.decode_tokens);
        sequences += static_cast<double>(step.sequences);
        if (step.has_kv_length) {
            kv.push_back(static_cast<double>(step.kv_length));
        }
    }
    const auto n = static_cast<double>(taken_.size());
    summary_.tokens_per_step = tokens / n;
    summary_.sequences_per_step = sequences / n;
    summary_.kv_length = kv.empty() ? 0 : stats::median(kv);
}

void PhaseSums::add(std::uint32_t slot, const CompareId& id, Category category, double ns) {
    auto found = series_.find(id);
    if (found == series_.end()) {
        if (series_.size() >= compare_max_rows) {
            ++refused_;
            return;
        }
        found = series_.emplace(id, Series{category, std::vector<double>(taken_.size())}).first;
    }
    found->second.ns[slot] += ns;
}

/// The middle half by period, so that a step in which the machine did something else is in no mean.
std::vector<bool> PhaseSums::central_slots() const {
    std::vector<double> sorted = period_;
    std::sort(sorted.begin(), sorted.end());
    const double low = sorted[sorted.size() / 4];
    const double high = sorted[sorted.size() - 1 - sorted.size() / 4];
    std::vector<bool> central(period_.size());
    for (std::size_t i = 0; i < period_.size(); ++i) {
        central[i] = low <= period_[i] && period_[i] <= high;
    }
    return central;
}

RunRow PhaseSums::row_of(const CompareId& id, const Series& series, const std::vector<bool>& central) {
    RunRow row;
    row.id = id;
    row.category = series.category;
    double counted = 0;
    double total = 0;
    for (std::size_t i = 0; i < series.ns.size(); ++i) {
        total += series.ns[i];
        if (central[i]) {
            row.central += series.ns[i];
            ++counted;
        }
    }
    row.mean = total / static_cast<double>(series.ns.size());
    row.central /= counted;
    std::vector<double> sorted = series.ns;
    std::sort(sorted.begin(), sorted.end());
    row.p50 = percentile(sorted, 0.5);
    row.p90 = percentile(sorted, 0.9);
    row.p99 = percentile(sorted, 0.99);
    return row;
}

void PhaseSums::finish(Phase phase, std::vector<RunRow>& out) const {
    if (taken_.empty()) {
        return;
    }
    const std::vector<bool> central = central_slots();
    CompareId step;
    step.phase = phase;
    out.push_back(row_of(step, Series{Category::other, period_}, central));
    for (const auto& [id, series] : series_) {
        out.push_back(row_of(id, series, central));
    }
}

} // namespace

/// Time per step of each brick, category and layer.
class CompareReader::Sums {
  public:
    explicit Sums(const recording::RunFacts& facts) : names_(facts.names) {}

    void steps_known(const resolve::StepTable& steps) {
        steps_ = &steps;
        slots_.assign(steps.size(), not_taken);
        for (std::size_t phase = 0; phase < phases_.size(); ++phase) {
            phases_[phase].take(steps, static_cast<Phase>(phase));
            const auto& taken = phases_[phase].taken();
            for (std::size_t slot = 0; slot < taken.size(); ++slot) {
                slots_[taken[slot]] = static_cast<std::uint32_t>(slot);
            }
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
            phases_[phase].finish(static_cast<Phase>(phase), run.rows);
            refused += phases_[phase].refused();
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
            last_slot_ = index == resolve::step_not_found ? not_taken : slots_[index];
            last_phase_ = index == resolve::step_not_found ? Phase::none : (*steps_)[index].phase;
        }
        if (last_slot_ == not_taken) {
            return;
        }
        PhaseSums& sums = phases_[static_cast<std::size_t>(last_phase_)];
        const auto ns = static_cast<double>(sample.self_ns);
        const Category category = names_.category(sample.name);
        sums.add(last_slot_, {CompareSubject::brick, last_phase_, device, text_of(sample.name), 0}, category, ns);
        sums.add(last_slot_, {CompareSubject::category, last_phase_, device, category_word(category), 0}, category, ns);
        if (sample.layer) {
            sums.add(last_slot_, {CompareSubject::layer, last_phase_, device, "", *sample.layer}, Category::other, ns);
        }
    }

    const std::string& text_of(std::uint16_t id) {
        const auto found = texts_.find(id);
        return found != texts_.end() ? found->second : texts_.emplace(id, names_.text(id)).first->second;
    }

    resolve::NameTable names_;
    std::unordered_map<std::uint16_t, std::string> texts_;
    const resolve::StepTable* steps_ = nullptr;
    std::vector<std::uint32_t> slots_; // by index of step
    std::array<PhaseSums, 4> phases_;
    std::uint64_t last_step_ = resolve::no_step;
    std::uint32_t last_slot_ = not_taken;
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
