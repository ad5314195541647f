// SPDX-License-Identifier: Apache-2.0
#include "numerics/diverge.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "numerics/pairing.hpp"
#include "numerics/recorded_checks.hpp"
#include "numerics/verdict.hpp"

namespace plumb::numerics {
namespace {

std::string counted(std::uint64_t count, const char* what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

class CheckComparison {
  public:
    CheckComparison(const CheckedRun& a, const CheckedRun& b, const BrickTable& bricks, const DivergeOptions& options)
        : a_(a), b_(b), bricks_(bricks), pairing_(pair_runs(a, b)), tolerance_(tolerance_for(a, b, options)) {}

    DivergeReport report() {
        DivergeReport report;
        report.tensors_a = a_.checks.size();
        report.tensors_b = b_.checks.size();
        report.steps_a = steps_of(a_);
        report.steps_b = steps_of(b_);
        report.exact = tolerance_.exact;
        report.tolerance = tolerance_.floating;
        report.tolerance_of = tolerance_.of;
        report.tolerance_given = tolerance_.given;
        judge_all(report);
        find_first(report);
        if (report.first) {
            find_layers(report);
        }
        count_unpaired(report);
        add_notes(report);
        return report;
    }

  private:
    struct Judged {
        TensorVerdict verdict;
        bool flip = false;
    };

    static std::uint64_t steps_of(const CheckedRun& run) {
        std::set<std::uint64_t> steps;
        for (const RunStep& step : run.steps) {
            if (step.step_plus_one != 0) {
                steps.insert(step.step_plus_one);
            }
        }
        return steps.size();
    }

    [[nodiscard]] const RunCheck& first_of(std::size_t pair) const { return a_.checks[pairing_.pairs[pair].a.front()]; }
    [[nodiscard]] const RunStep& step_of(std::size_t pair) const { return a_.steps[first_of(pair).step]; }

    [[nodiscard]] TensorPlace place_of_pair(std::size_t pair) const {
        TensorPlace place = place_of(a_, first_of(pair), bricks_);
        const RunCheck& other = b_.checks[pairing_.pairs[pair].b.front()];
        if (other.check.step_plus_one != 0) {
            place.step_b = other.check.step_plus_one - 1;
        }
        return place;
    }

    [[nodiscard]] TensorPair describe(std::size_t pair) const {
        const WholeTensor a = whole_of(a_, pairing_.pairs[pair].a);
        const WholeTensor b = whole_of(b_, pairing_.pairs[pair].b);
        TensorPair described;
        described.place = place_of_pair(pair);
        described.place.rows = rows_of(a.check);
        described.a = facts_of(a.check);
        described.b = facts_of(b.check);
        described.difference = judged_[pair].verdict.difference;
        described.distance = judged_[pair].verdict.distance;
        return described;
    }

    void judge_all(DivergeReport& report) {
        std::size_t worst = 0;
        for (std::size_t i = 0; i < pairing_.pairs.size(); ++i) {
            const WholeTensor a = whole_of(a_, pairing_.pairs[i].a);
            const WholeTensor b = whole_of(b_, pairing_.pairs[i].b);
            Judged judged{judge(a, b, tolerance_), false};
            note_flip(report, i, a.check, b.check, judged);
            ++report.compared;
            report.identical += judged.verdict.identical ? 1 : 0;
            report.divergent += judged.verdict.difference != Difference::none ? 1 : 0;
            weak_ += judged.verdict.weak ? 1 : 0;
            unnumbered_ += judged.verdict.unnumbered ? 1 : 0;
            hash_unknown_ += judged.verdict.hash_unknown ? 1 : 0;
            nonfinite_alike_ +=
                judged.verdict.difference != Difference::nonfinite && !a.check.fingerprint.finite() ? 1 : 0;
            judged_.push_back(judged);
            if (worse(judged.verdict.difference, judged.verdict.distance, judged_[worst].verdict.difference,
                      judged_[worst].verdict.distance)) {
                worst = i;
            }
        }
        if (!judged_.empty() && !judged_[worst].verdict.identical) {
            report.worst = describe(worst);
        }
    }

    void note_flip(DivergeReport& report, std::size_t pair, const recording::TensorCheck& a,
                   const recording::TensorCheck& b, Judged& judged) const {
        judged.flip = a.argmax != no_index && b.argmax != no_index && a.argmax != b.argmax;
        if (!judged.flip) {
            return;
        }
        ++report.flip_count;
        if (report.flips.size() < most_rows) {
            report.flips.push_back({place_of_pair(pair), a.argmax, b.argmax, a.margin, b.margin});
        }
    }

    /// The first divergent pair; but where the logits of the step before it, within tolerance, name another token, and
    /// nothing before the pair could show that, it is they: what follows was computed from that token.
    void find_first(DivergeReport& report) {
        std::map<std::uint32_t, std::size_t> flips; // by step: the first
        for (std::size_t i = 0; i < judged_.size(); ++i) {
            if (judged_[i].verdict.difference == Difference::none) {
                if (judged_[i].flip) {
                    flips.try_emplace(a_.checks[pairing_.pairs[i].a.back()].step, i);
                }
                continue;
            }
            const std::optional<std::uint32_t> before = step_before(first_of(i).step);
            const auto flip = before ? flips.find(*before) : flips.end();
            const bool by_token = flip != flips.end() && is_entry(i);
            first_ = by_token ? flip->second : i;
            if (by_token) {
                judged_[first_].verdict.difference = Difference::token;
            }
            describe_first(report);
            return;
        }
    }

    /// The step whose logits chose what the step computes; a prompt was not chosen.
    [[nodiscard]] std::optional<std::uint32_t> step_before(std::uint32_t index) const {
        const RunStep& step = a_.steps[index];
        if (step.phase == Phase::prefill) {
            return std::nullopt;
        }
        for (std::uint32_t at = index; at-- > 0;) {
            const RunStep& before = a_.steps[at];
            if (before.sequence == step.sequence && before.step_plus_one != 0) {
                return before.pass == step.pass ? std::optional(at) : std::nullopt;
            }
        }
        return std::nullopt;
    }

    /// Whether the pair is the first of its step, or of its embedding: another token shows there at once.
    [[nodiscard]] bool is_entry(std::size_t pair) const {
        const auto embeds = [this](std::size_t at) {
            return bricks_.name(first_of(at).brick).find("embed") != std::string::npos;
        };
        bool first = true;
        bool first_embedding = embeds(pair);
        for (std::size_t at = pair; at-- > 0;) {
            if (first_of(at).step == first_of(pair).step) {
                first = false;
                first_embedding = first_embedding && !embeds(at);
            }
        }
        return first || first_embedding;
    }

    void describe_first(DivergeReport& report) const {
        FirstDivergence first;
        first.tensor = describe(first_);
        const PairedTensor& pair = pairing_.pairs[first_];
        if (first.tensor.difference == Difference::token) {
            first.token_a = a_.checks[pair.a.back()].check.argmax;
            first.token_b = b_.checks[pair.b.back()].check.argmax;
        }
        if (first_of(first_).check.role == TensorRole::input) {
            first.inputs = InputState::disagree;
            first.preceded_by = output_before(first_);
        } else {
            describe_inputs(first);
        }
        report.first = std::move(first);
    }

    void describe_inputs(FirstDivergence& first) const {
        const std::vector<std::uint32_t> inputs = inputs_of_call(a_, pairing_.pairs[first_].a.front());
        bool all = !inputs.empty();
        bool agree = true;
        for (const std::uint32_t input : inputs) {
            const auto found =
                std::lower_bound(pairing_.pairs.begin(), pairing_.pairs.end(), input,
                                 [](const PairedTensor& pair, std::uint32_t at) { return pair.a.front() < at; });
            if (found == pairing_.pairs.end() || found->a.front() != input) {
                all = false;
                continue;
            }
            const auto at = static_cast<std::size_t>(found - pairing_.pairs.begin());
            agree = agree && judged_[at].verdict.difference == Difference::none;
            first.input_tensors.push_back(describe(at));
        }
        first.inputs = !agree ? InputState::disagree : all ? InputState::agree : InputState::not_recorded;
    }

    [[nodiscard]] std::optional<TensorPlace> output_before(std::size_t pair) const {
        for (std::size_t at = pair; at-- > 0;) {
            if (first_of(at).check.role == TensorRole::output && step_of(at).sequence == step_of(pair).sequence) {
                return place_of_pair(at);
            }
        }
        return std::nullopt;
    }

    void find_layers(DivergeReport& report) const {
        std::map<std::uint32_t, std::size_t> last;
        std::set<std::uint32_t> has_residual;
        for (std::size_t i = 0; i < judged_.size(); ++i) {
            const RunCheck& check = first_of(i);
            if (check.step != first_of(first_).step || check.check.layer_plus_one == 0 ||
                check.check.role != TensorRole::output) {
                continue;
            }
            const std::uint32_t layer = check.check.layer_plus_one - 1;
            const bool residual = bricks_.name(check.brick) == "residual_add";
            if (residual || has_residual.count(layer) == 0) {
                last[layer] = i;
            }
            if (residual) {
                has_residual.insert(layer);
            }
        }
        for (const auto& [layer, pair] : last) {
            report.layers.push_back({layer, describe(pair)});
        }
    }

    void count_unpaired(DivergeReport& report) {
        std::set<std::pair<bool, std::uint32_t>> steps;
        std::set<std::uint32_t> common;
        for (const PairedTensor& pair : pairing_.pairs) {
            common.insert(a_.checks[pair.a.front()].check.sequence);
        }
        for (const Unpaired& lone : pairing_.unpaired) {
            const CheckedRun& run = lone.of_a ? a_ : b_;
            const RunCheck& check = run.checks[lone.check];
            MissingCount& count = lone.of_a ? report.only_in_a : report.only_in_b;
            Lack lack = lone.lack;
            if (lack == Lack::sequence && common.empty()) {
                lack = Lack::step;
            }
            if (lack == Lack::sequence) {
                sequences_.insert({lone.of_a, check.check.sequence});
                ++report.other_sequences;
                continue;
            }
            if (lack == Lack::chunking) {
                ++report.chunking;
                continue;
            }
            ++(lack == Lack::step ? count.step_tensors : count.tensors);
            const bool said = lack == Lack::step && !steps.insert({lone.of_a, check.step}).second;
            count.steps += lack == Lack::step && !said ? 1 : 0;
            if (!said && report.missing.size() < most_rows) {
                MissingTensor missing{lone.of_a, place_of(run, check, bricks_)};
                if (lack == Lack::step) {
                    missing.place.brick.clear(); // the whole step
                    missing.place.layer.reset();
                }
                report.missing.push_back(std::move(missing));
            }
        }
    }

    void add_notes(DivergeReport& report) const {
        for (const bool of_a : {true, false}) {
            const auto only = static_cast<std::uint64_t>(std::count_if(
                sequences_.begin(), sequences_.end(), [of_a](const auto& sequence) { return sequence.first == of_a; }));
            if (only != 0) {
                report.notes.push_back(counted(only, "sequence") + " only in " + (of_a ? "A" : "B") + ": not compared");
            }
        }
        if (report.chunking != 0) {
            report.notes.push_back(counted(report.chunking, "tensor") +
                                   " of the last rows of a prefill step, where the other run's prefill has no border: "
                                   "not compared, since that depends on how the prompt was cut");
        }
        if (!pairing_.by_position) {
            report.notes.emplace_back("positions are not known in every step: steps are paired by their number within "
                                      "their phase; give kv_length and tokens to PLUMB_STEP, or a position to "
                                      "PLUMB_TENSOR");
        }
        if (weak_ != 0) {
            report.notes.push_back(counted(weak_, "tensor") +
                                   " of tensors=nonfinite: only the largest values were compared");
        }
        if (unnumbered_ != 0) {
            report.notes.push_back(counted(unnumbered_, "tensor") +
                                   " whose elements are numbered otherwise in the other run, as in a captured prefill: "
                                   "only their least and largest values and their norms were compared");
        }
        if (hash_unknown_ != 0) {
            report.notes.push_back(
                counted(hash_unknown_, "tensor") +
                " put together from pieces whose borders are no multiple of 32 elements: judged by a "
                "distance of 1e-12, not by their bits");
        }
        if (nonfinite_alike_ != 0) {
            report.notes.push_back(counted(nonfinite_alike_, "tensor") +
                                   " with as many NaN and Inf in both runs; see plumb health");
        }
    }

    const CheckedRun& a_;
    const CheckedRun& b_;
    const BrickTable& bricks_;
    const Pairing pairing_;
    const Tolerance tolerance_;
    std::vector<Judged> judged_; // as pairing_.pairs
    std::size_t first_ = 0;
    std::set<std::pair<bool, std::uint32_t>> sequences_; // only in A (true) or B
    std::uint64_t weak_ = 0, unnumbered_ = 0, hash_unknown_ = 0, nonfinite_alike_ = 0;
};

} // namespace

Result<DivergeReport> diverge(const recording::RecordedRun& source_a, const recording::RecordedRun& source_b,
                              const DivergeOptions& options) {
    if (options.tolerance && !(*options.tolerance >= 0 && std::isfinite(*options.tolerance))) {
        return Error{ErrorCode::invalid_argument, "the tolerance is a relative distance: give a number from 0 on"};
    }
    BrickTable bricks;
    const Result<CheckedRun> a = load_run(source_a, bricks);
    if (!a.ok()) {
        return a.error();
    }
    const Result<CheckedRun> b = load_run(source_b, bricks);
    if (!b.ok()) {
        return b.error();
    }
    const bool looked_a = !looked_at(*source_a.facts).empty();
    if (a->checks.empty() && b->checks.empty()) {
        return Error{ErrorCode::not_found,
                     "neither recording holds " + lacking_checks(looked_a ? *source_a.facts : *source_b.facts)};
    }
    DivergeReport report = CheckComparison(*a, *b, bricks, options).report();
    if (a->checks.empty()) {
        report.notes.push_back("recording A holds no " + lacking_checks(*source_a.facts));
    }
    if (b->checks.empty()) {
        report.notes.push_back("recording B holds no " + lacking_checks(*source_b.facts));
    }
    return report;
}

} // namespace plumb::numerics

namespace plumb {

Result<DivergeReport> diverge_recordings(const std::string& path_a, const std::string& path_b,
                                         const DivergeOptions& options) {
    const Result<recording::RecordedRun> a = recording::open_run(path_a);
    if (!a.ok()) {
        return a.error();
    }
    const Result<recording::RecordedRun> b = recording::open_run(path_b);
    if (!b.ok()) {
        return b.error();
    }
    Result<DivergeReport> report = numerics::diverge(*a, *b, options);
    if (report.ok()) {
        report->path_a = path_a;
        report->path_b = path_b;
        numerics::add_notes(*a->facts, path_a, report->notes);
        numerics::add_notes(*b->facts, path_b, report->notes);
    }
    return report;
}

} // namespace plumb
