// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare_rows.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/compare_change.hpp"
#include "analysis/compare_gate.hpp"
#include "stats/bootstrap.hpp"
#include "stats/figure.hpp"
#include "stats/median.hpp"
#include "stats/sample_check.hpp"

namespace plumb::analysis {
namespace {

/// Below this share of the step a row gets no verdict: it is a few clock ticks, and each verdict costs the others power.
constexpr double least_share = 0.01;
/// Verdicts against the run's pace hold while the bricks that they name are a minority: else the pace itself changed.
constexpr double most_changed_weight = 1.0 / 3;

/// The same row in all runs of both sides; null where a run does not have it.
struct Line {
    std::vector<const RunRow*> base, changed;
    double weight = 0; // median time per step over the runs of a side; of the side where it is larger
};
using Lines = std::map<CompareId, Line>;

void add_side(const std::vector<RunFigures>& runs, bool changed, Lines& lines) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
        for (const RunRow& row : runs[i].rows) {
            Line& line = lines[row.id];
            auto& side = changed ? line.changed : line.base;
            side.resize(runs.size(), nullptr);
            side[i] = &row;
        }
    }
}

Lines lines_of(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed) {
    Lines lines;
    add_side(base, false, lines);
    add_side(changed, true, lines);
    for (auto& [id, line] : lines) {
        line.base.resize(base.size(), nullptr);
        line.changed.resize(changed.size(), nullptr);
        for (const auto* side : {&line.base, &line.changed}) {
            std::vector<double> times;
            for (const RunRow* row : *side) {
                times.push_back(row != nullptr ? row->central : 0);
            }
            line.weight = std::max(line.weight, stats::median(times));
        }
    }
    return lines;
}

bool has_p50(const Line& line) {
    const auto good = [](const RunRow* row) {
        return row == nullptr || !std::isnan(row->p50);
    };
    return std::all_of(line.base.begin(), line.base.end(), good) &&
           std::all_of(line.changed.begin(), line.changed.end(), good);
}

std::vector<double> numbers(const std::vector<const RunRow*>& side, CompareStatistic statistic) {
    std::vector<double> out;
    for (const RunRow* row : side) {
        out.push_back(row == nullptr ? 0 : statistic == CompareStatistic::p50 ? row->p50 : row->mean);
    }
    return out;
}

Figure noise_of(const std::vector<double>& runs) {
    if (runs.size() < stats::fewest_runs) {
        return stats::absent("3 runs are needed");
    }
    const double mean = stats::mean(runs);
    if (!(mean > 0)) {
        return stats::absent("no time");
    }
    double squares = 0;
    for (const double run : runs) {
        squares += (run - mean) * (run - mean);
    }
    return stats::measured(std::sqrt(squares / static_cast<double>(runs.size() - 1)) / mean);
}

CompareRow row_of(const CompareId& id, const Line& line) {
    CompareRow row;
    row.subject = id.subject;
    row.phase = id.phase;
    row.name = id.name;
    row.layer = id.layer;
    row.device = id.device;
    for (const auto* side : {&line.base, &line.changed}) {
        for (const RunRow* run : *side) {
            if (run != nullptr) {
                row.category = run->category;
                row.per_replay = run->per_replay;
            }
        }
    }
    row.statistic = has_p50(line) ? CompareStatistic::p50 : CompareStatistic::mean;
    row.base_runs = numbers(line.base, row.statistic);
    row.changed_runs = numbers(line.changed, row.statistic);
    row.base_ns = stats::measured(stats::median(row.base_runs));
    row.changed_ns = stats::measured(stats::median(row.changed_runs));
    row.base_noise = noise_of(row.base_runs);
    row.changed_noise = noise_of(row.changed_runs);
    return row;
}

/// The bricks of one phase on one side of the machine, as logarithms, those that get a verdict only.
struct Bricks {
    std::vector<std::size_t> rows; // index into Comparison::rows
    std::vector<std::vector<double>> logs;
    std::vector<double> weights;
    std::size_t base_runs = 0;
};

class Judge {
  public:
    Judge(const CompareOptions& options, Phase main_phase, Comparison& out)
        : options_(options), out_(out), main_phase_(main_phase) {}

    void run(const Lines& lines) {
        std::map<Phase, double> steps;
        for (const auto& [id, line] : lines) {
            if (id.subject == CompareSubject::step) {
                steps[id.phase] = line.weight;
            }
        }
        std::vector<double> shares;
        for (const auto& [id, line] : lines) {
            out_.rows.push_back(row_of(id, line));
            const double step = steps[id.phase];
            shares.push_back(step > 0 ? line.weight / step : 0);
        }
        for (std::size_t i = 0; i < out_.rows.size(); ++i) {
            judged_.push_back(shares[i] >= least_share);
            const CompareRow& row = out_.rows[i];
            if (judged_[i] && row.subject == CompareSubject::brick) {
                take_brick(i, shares[i]);
            }
        }
        count_tests();
        for (std::size_t i = 0; i < out_.rows.size(); ++i) {
            judge_absolutely(i);
        }
        for (const auto& [key, bricks] : bricks_) {
            judge_against_pace(bricks, confidence(CompareSubject::brick, key.first));
        }
    }

    /// Steps have their own records: their times stand.
    void distrust_what_looks_faster() {
        for (CompareRow& row : out_.rows) {
            if (row.subject == CompareSubject::step || (row.verdict != Verdict::fast && row.verdict != Verdict::same)) {
                continue;
            }
            row.verdict = Verdict::undecided;
            row.by_own_change = false;
            row.reason = "records were lost";
        }
    }

  private:
    void take_brick(std::size_t index, double share) {
        const CompareRow& row = out_.rows[index];
        std::vector<double> logs;
        for (const auto* side : {&row.base_runs, &row.changed_runs}) {
            for (const double value : *side) {
                if (!(value > 0)) {
                    return; // it did not run in every run
                }
                logs.push_back(std::log(value));
            }
        }
        Bricks& bricks = bricks_[{row.phase, row.device}];
        bricks.rows.push_back(index);
        bricks.logs.push_back(std::move(logs));
        bricks.weights.push_back(share);
        bricks.base_runs = row.base_runs.size();
    }

    /// Step and bricks of the phase that matters; all else is a sum of the same times, or of fewer steps.
    [[nodiscard]] bool first_family(CompareSubject subject, Phase phase) const {
        return phase == main_phase_ && (subject == CompareSubject::step || subject == CompareSubject::brick);
    }

    /// Bonferroni with weights: every interval that can give a verdict has its part of the chance of a false one; three
    /// quarters of it belong to the first family.
    void count_tests() {
        double first = 0;
        double second = 0;
        for (std::size_t i = 0; i < judged_.size(); ++i) {
            if (judged_[i]) {
                ++(first_family(out_.rows[i].subject, out_.rows[i].phase) ? first : second);
            }
        }
        for (const auto& [key, bricks] : bricks_) {
            (first_family(CompareSubject::brick, key.first) ? first : second) +=
                static_cast<double>(bricks.rows.size());
        }
        out_.rows_corrected_for = static_cast<std::size_t>(first + second);
        first_confidence_ = 1 - options_.false_alarm * 0.75 / std::max(1.0, first);
        second_confidence_ = 1 - options_.false_alarm * 0.25 / std::max(1.0, second);
    }

    [[nodiscard]] double confidence(CompareSubject subject, Phase phase) const {
        return first_family(subject, phase) ? first_confidence_ : second_confidence_;
    }

    void judge_absolutely(std::size_t index) {
        CompareRow& row = out_.rows[index];
        const LogChange change = ratio_change(row.base_runs, row.changed_runs, confidence(row.subject, row.phase));
        row.change = as_share(change);
        LogChange none;
        none.reason = "the pace of the other bricks is not known";
        row.own_change = as_share(none);
        if (!judged_[index]) {
            row.reason = too_small;
            return;
        }
        Judgement judgement = judge(change, options_.same_band);
        row.verdict = judgement.verdict;
        row.reason = std::move(judgement.reason);
    }

    void judge_against_pace(const Bricks& bricks, double sure) {
        std::vector<Judgement> judgements(bricks.rows.size());
        double changed_weight = 0;
        double all_weight = 0;
        for (std::size_t i = 0; i < bricks.rows.size(); ++i) {
            const std::vector<double> pace = pace_without(i, bricks.logs, bricks.weights);
            if (pace.empty()) {
                return;
            }
            std::vector<double> own = bricks.logs[i];
            for (std::size_t run = 0; run < own.size(); ++run) {
                own[run] -= pace[run];
            }
            const std::span<const double> all(own);
            const LogChange change = log_change(all.first(bricks.base_runs), all.subspan(bricks.base_runs), sure);
            out_.rows[bricks.rows[i]].own_change = as_share(change);
            judgements[i] = judge(change, options_.same_band);
            all_weight += bricks.weights[i];
            if (judgements[i].verdict == Verdict::slow || judgements[i].verdict == Verdict::fast) {
                changed_weight += bricks.weights[i];
            }
        }
        if (changed_weight > most_changed_weight * all_weight) {
            return;
        }
        for (std::size_t i = 0; i < bricks.rows.size(); ++i) {
            CompareRow& row = out_.rows[bricks.rows[i]];
            const Verdict own = judgements[i].verdict;
            // SAME against the pace is not SAME: the pace may have changed.
            if (row.verdict == Verdict::undecided && (own == Verdict::slow || own == Verdict::fast)) {
                row.verdict = own;
                row.by_own_change = true;
                row.reason.clear();
            }
        }
    }

    const CompareOptions& options_;
    Comparison& out_;
    std::vector<bool> judged_; // by row
    std::map<std::pair<Phase, bool>, Bricks> bricks_;
    Phase main_phase_;
    double first_confidence_ = 0.99, second_confidence_ = 0.99;
};

double mean_central(const std::vector<const RunRow*>& side) {
    double sum = 0;
    for (const RunRow* row : side) {
        sum += row != nullptr ? row->central : 0;
    }
    return sum / static_cast<double>(side.size());
}

bool has_device_bricks(const Lines& lines, Phase phase) {
    return std::any_of(lines.begin(), lines.end(), [phase](const auto& entry) {
        return entry.first.phase == phase && entry.first.subject == CompareSubject::brick && entry.first.device;
    });
}

bool is_sampled(const Line& line) {
    const auto sampled = [](const RunRow* row) {
        return row != nullptr && row->per_replay;
    };
    return std::any_of(line.base.begin(), line.base.end(), sampled) ||
           std::any_of(line.changed.begin(), line.changed.end(), sampled);
}

/// Where a brick is timed in some steps only, those are not the steps of the others: nothing is left over then.
/// False: that is so.
bool add_parts(const Lines& lines, Attribution& out) {
    bool adds_up = true;
    Contribution rest;
    rest.name = "unattributed";
    rest.device = out.device;
    rest.base_ns = out.base_ns;
    rest.changed_ns = out.changed_ns;
    for (const auto& [id, line] : lines) {
        if (id.phase != out.phase || id.subject != CompareSubject::brick || id.device != out.device) {
            continue;
        }
        Contribution part;
        part.name = id.name;
        part.device = id.device;
        part.base_ns = mean_central(line.base);
        part.changed_ns = mean_central(line.changed);
        part.change_ns = part.changed_ns - part.base_ns;
        adds_up = adds_up && !is_sampled(line);
        rest.base_ns -= part.base_ns;
        rest.changed_ns -= part.changed_ns;
        out.parts.push_back(std::move(part));
    }
    std::stable_sort(out.parts.begin(), out.parts.end(), [](const Contribution& a, const Contribution& b) {
        return std::fabs(a.change_ns) > std::fabs(b.change_ns);
    });
    rest.change_ns = rest.changed_ns - rest.base_ns;
    if (adds_up) {
        out.parts.push_back(std::move(rest));
    }
    return adds_up;
}

} // namespace

void compare_rows(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed,
                  const CompareOptions& options, Comparison& out) {
    Judge judge(options, main_phase(base), out);
    judge.run(lines_of(base, changed));
    if (lost_records(base, changed)) {
        judge.distrust_what_looks_faster();
    }
    std::stable_sort(out.rows.begin(), out.rows.end(), [](const CompareRow& a, const CompareRow& b) {
        if (a.phase != b.phase) {
            return a.phase < b.phase;
        }
        if (a.subject != b.subject) {
            return a.subject < b.subject;
        }
        if (a.subject == CompareSubject::layer) {
            return a.layer < b.layer;
        }
        return a.base_ns.value.value_or(0) > b.base_ns.value.value_or(0);
    });
}

void attribute(const std::vector<RunFigures>& base, const std::vector<RunFigures>& changed, Comparison& out) {
    const Lines lines = lines_of(base, changed);
    for (const auto& [id, line] : lines) {
        if (id.subject != CompareSubject::step) {
            continue;
        }
        Attribution attribution;
        attribution.phase = id.phase;
        attribution.device = has_device_bricks(lines, id.phase);
        attribution.base_ns = mean_central(line.base);
        attribution.changed_ns = mean_central(line.changed);
        attribution.change_ns = attribution.changed_ns - attribution.base_ns;
        attribution.adds_up = add_parts(lines, attribution);
        if (!attribution.adds_up) {
            out.notes.push_back(
                std::string("Some bricks of the ") + phase_word(id.phase) +
                " steps are timed in some steps only: their means are of those steps, so the parts of a "
                "step's change do not add up.");
        }
        out.attributions.push_back(std::move(attribution));
    }
}

} // namespace plumb::analysis
