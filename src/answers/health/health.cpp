// SPDX-License-Identifier: Apache-2.0
#include "answers/health/health.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "answers/answer.hpp"
#include "numerics/pairing.hpp"
#include "numerics/recorded_checks.hpp"
#include "numerics/verdict.hpp"

namespace plumb::numerics {
namespace {

constexpr std::uint32_t outside = std::numeric_limits<std::uint32_t>::max(); // sorts behind every layer

Figure missing(const char* reason) { return {std::nullopt, reason}; }
Figure measured(double value) {
    return std::isfinite(value) ? Figure{value, {}} : missing("beyond the range of a double");
}

std::string number(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
}

std::string layer_text(std::uint32_t layer) {
    return layer == outside ? std::string("outside of layers") : "layer " + std::to_string(layer);
}

std::uint32_t layer_of(const RunCheck& check) {
    return check.check.layer_plus_one == 0 ? outside : check.check.layer_plus_one - 1;
}

/// Sums over the outputs of one layer that stand for it.
struct TensorSums {
    double squares = 0, l2 = 0;
    std::uint64_t elements = 0, tensors = 0, nonfinite = 0, zero = 0, unknown = 0;
    bool vanished = false; // some squares, of what is not zero
};

struct LayerSums {
    LayerHealth row;
    TensorSums sums;
    std::uint64_t pairs = 0, lost = 0, uncomparable = 0; // with the twin; lost: non-finite in either
    double error_squares = 0, twin_squares = 0;
    double least_cosine = std::numeric_limits<double>::infinity();
    bool cosine_lost = false;
};

class Examination {
  public:
    Examination(const CheckedRun& run, const BrickTable& bricks) : run_(run), bricks_(bricks) { choose_outputs(); }

    HealthReport report() {
        HealthReport report;
        report.tensors = run_.checks.size();
        std::set<std::uint64_t> steps;
        for (std::uint32_t i = 0; i < run_.checks.size(); ++i) {
            look_at(i, report);
            steps.insert(run_.checks[i].check.step_plus_one);
        }
        steps.erase(0);
        report.steps = steps.size();
        return report;
    }

    void compare(const CheckedRun& twin, HealthReport& report) {
        const Pairing pairing = pair_runs(twin, run_);
        Tolerance tolerance; // no verdict is asked for
        tolerance.floating = std::numeric_limits<double>::infinity();
        for (const PairedTensor& pair : pairing.pairs) {
            const WholeTensor reference = whole_of(twin, pair.a);
            const WholeTensor tested = whole_of(run_, pair.b);
            ++report.compared;
            if (reference.check.role != TensorRole::output) {
                continue;
            }
            const TensorVerdict verdict = judge(reference, tested, tolerance);
            TensorPair described = describe(twin, pair, reference, tested, verdict);
            if (stands_for_layer(pair.b.front())) {
                add_pair(layers_[layer_of(run_.checks[pair.b.front()])], reference, tested, described, verdict);
            }
            keep_worst(std::move(described), report);
        }
        for (const RunCheck& check : twin.checks) {
            report.twin_nonfinite += check.check.fingerprint.finite() ? 0 : 1;
        }
        for (const bool of_twin : {false, true}) {
            const auto alone = std::count_if(pairing.unpaired.begin(), pairing.unpaired.end(),
                                             [of_twin](const Unpaired& lone) { return lone.of_a == of_twin; });
            if (alone != 0) {
                report.notes.push_back(std::to_string(alone) + (alone == 1 ? " tensor" : " tensors") +
                                       (of_twin ? " of the twin" : "") + (alone == 1 ? " has" : " have") +
                                       " no counterpart in the " + (of_twin ? "recording" : "twin") +
                                       ": not compared; see plumb diverge");
            }
        }
    }

    void finish(HealthReport& report, bool twin) {
        for (auto& [index, layer] : layers_) {
            fill(layer, twin);
            layer.row.growth = growth_of(index, layer.row);
            if (index != outside) {
                layer.row.layer = index;
            }
            find(index, layer, report);
            report.layers.push_back(layer.row);
        }
        report.residual_growth = residual_growth(report.layers);
    }

  private:
    /// Of each layer the residual stream, the last one of its step; else the last output.
    void choose_outputs() {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> last; // by step and layer
        std::set<std::uint32_t> has_residual;
        for (const RunCheck& check : run_.checks) {
            if (check.check.role == TensorRole::output && is_residual(check)) {
                has_residual.insert(layer_of(check));
            }
        }
        for (std::uint32_t i = 0; i < run_.checks.size(); ++i) {
            const RunCheck& check = run_.checks[i];
            if (check.check.role == TensorRole::output &&
                (has_residual.count(layer_of(check)) == 0 || is_residual(check))) {
                last[{check.step, layer_of(check)}] = i;
            }
        }
        chosen_.assign(run_.checks.size(), false);
        for (const auto& [place, index] : last) {
            chosen_[index] = true;
        }
    }

    [[nodiscard]] bool is_residual(const RunCheck& check) const { return bricks_.name(check.brick) == "residual_add"; }
    [[nodiscard]] bool stands_for_layer(std::uint32_t index) const { return chosen_[index]; }

    void look_at(std::uint32_t index, HealthReport& report) {
        const RunCheck& check = run_.checks[index];
        const TensorFacts facts = facts_of(check.check);
        LayerSums& layer = layers_[layer_of(check)];
        const std::string& brick = bricks_.name(check.brick);
        ++layer.row.tensors;
        if (!check.check.fingerprint.finite()) {
            ++layer.row.nonfinite;
            ++report.nonfinite;
            if (!report.first_nonfinite) {
                describe_nonfinite(index, report);
            }
        }
        if (facts.largest > layer.row.largest) {
            layer.row.largest = facts.largest;
            layer.row.largest_brick = brick;
        }
        const double share = facts.largest / range_of(facts.dtype);
        if (std::isfinite(range_of(facts.dtype)) && share >= layer.row.saturation.value.value_or(-1)) {
            layer.row.saturation = measured(share);
            layer.row.saturated_brick = brick;
        }
        if (stands_for_layer(index)) {
            layer.row.brick = brick;
            add_output(check.check, layer.sums);
        }
    }

    static void add_output(const recording::TensorCheck& check, TensorSums& sums) {
        const Fingerprint& print = check.fingerprint;
        ++sums.tensors;
        if (check.level == recording::CheckLevel::nonfinite) {
            ++sums.unknown;
        } else if (!print.finite()) {
            ++sums.nonfinite;
        } else {
            sums.squares += print.sum_of_squares;
            sums.elements += print.count;
            sums.l2 += std::sqrt(print.sum_of_squares);
            const bool zero = print.min == 0 && print.max == 0;
            sums.zero += zero ? 1 : 0;
            sums.vanished = sums.vanished || (print.count != 0 && print.sum_of_squares == 0 && !zero);
        }
    }

    void describe_nonfinite(std::uint32_t index, HealthReport& report) const {
        FirstNonfinite first;
        first.place = place_of(run_, run_.checks[index], bricks_);
        first.facts = facts_of(run_.checks[index].check);
        if (first.place.role == TensorRole::input) {
            first.inputs = InputState::disagree;
        } else {
            bool finite = true;
            for (const std::uint32_t input : inputs_of_call(run_, index)) {
                finite = finite && run_.checks[input].check.fingerprint.finite();
                first.input_tensors.push_back(
                    {place_of(run_, run_.checks[input], bricks_), facts_of(run_.checks[input].check)});
            }
            first.inputs = first.input_tensors.empty() ? InputState::not_recorded
                           : finite                    ? InputState::agree
                                                       : InputState::disagree;
        }
        report.first_nonfinite = std::move(first);
    }

    TensorPair describe(const CheckedRun& twin, const PairedTensor& pair, const WholeTensor& reference,
                        const WholeTensor& tested, const TensorVerdict& verdict) const {
        TensorPair described;
        described.place = place_of(run_, run_.checks[pair.b.front()], bricks_);
        described.place.rows = rows_of(tested.check);
        const std::uint64_t step = twin.checks[pair.a.front()].check.step_plus_one;
        if (step != 0) {
            described.place.step_b = step - 1;
        }
        described.a = facts_of(tested.check);
        described.b = facts_of(reference.check);
        described.difference = verdict.difference;
        described.distance = verdict.distance;
        // NaN at the same places of both are still no number that could be near.
        if (!tested.check.fingerprint.finite() || !reference.check.fingerprint.finite()) {
            constexpr double infinite = std::numeric_limits<double>::infinity();
            described.difference = Difference::nonfinite;
            described.distance = {infinite, infinite, infinite};
        }
        return described;
    }

    static void add_pair(LayerSums& layer, const WholeTensor& reference, const WholeTensor& tested,
                         const TensorPair& described, const TensorVerdict& verdict) {
        ++layer.pairs;
        if (described.difference == Difference::nonfinite) {
            ++layer.lost;
            return;
        }
        if (described.difference == Difference::shape || described.difference == Difference::empty ||
            !std::isfinite(described.distance.estimate) || verdict.weak || verdict.unnumbered) {
            ++layer.uncomparable;
            return;
        }
        const double squares = reference.check.fingerprint.sum_of_squares;
        layer.twin_squares += squares;
        layer.error_squares += described.distance.estimate * described.distance.estimate * squares;
        const double angle = cosine(reference.check.fingerprint, tested.check.fingerprint);
        layer.cosine_lost = layer.cosine_lost || std::isnan(angle);
        layer.least_cosine = std::isnan(angle) ? layer.least_cosine : std::min(layer.least_cosine, angle);
    }

    static void keep_worst(TensorPair described, HealthReport& report) {
        const auto before = [](const TensorPair& x, const TensorPair& y) {
            return worse(x.difference, x.distance, y.difference, y.distance);
        };
        report.worst.insert(std::upper_bound(report.worst.begin(), report.worst.end(), described, before),
                            std::move(described));
        if (report.worst.size() > most_worst) {
            report.worst.pop_back();
        }
    }

    static void fill(LayerSums& layer, bool twin) {
        const TensorSums& sums = layer.sums;
        LayerHealth& row = layer.row;
        if (sums.nonfinite != 0) {
            row.rms = row.l2 = missing("not finite");
        } else if (sums.elements == 0) {
            row.rms = row.l2 = missing(sums.unknown != 0 ? "tensors=nonfinite keeps no sums" : "no output was checked");
        } else if (sums.vanished) {
            row.rms = row.l2 = missing("squares vanish");
        } else {
            row.rms = measured(std::sqrt(sums.squares / static_cast<double>(sums.elements)));
            row.l2 = measured(sums.l2 / static_cast<double>(sums.tensors - sums.unknown));
        }
        if (!row.saturation.value) {
            row.saturation = missing("no finite floating tensor");
        }
        row.twin = twin;
        if (twin) {
            fill_twin(layer);
        } else {
            row.relative_error = row.cosine = row.signal_to_noise_db = missing("no twin was given");
        }
    }

    static void fill_twin(LayerSums& layer) {
        LayerHealth& row = layer.row;
        const char* reason = layer.pairs == 0          ? "the twin has no such tensor"
                             : layer.lost != 0         ? "not finite"
                             : layer.uncomparable != 0 ? "not comparable with the twin's"
                             : layer.twin_squares == 0 ? "the twin's is zero"
                             : layer.twin_squares > std::numeric_limits<double>::max() ? "beyond the range of a double"
                                                                                       : nullptr;
        if (reason != nullptr) {
            row.relative_error = row.cosine = row.signal_to_noise_db = missing(reason);
            return;
        }
        const double error = std::sqrt(layer.error_squares / layer.twin_squares);
        row.relative_error = measured(error);
        row.cosine = std::isfinite(layer.least_cosine) && !layer.cosine_lost ? measured(layer.least_cosine)
                                                                             : missing("a tensor is zero");
        constexpr double db_per_decade = 20;
        row.signal_to_noise_db = error == 0 ? missing("identical") : measured(-db_per_decade * std::log10(error));
    }

    /// REQUIRES: the layers before are filled.
    [[nodiscard]] Figure growth_of(std::uint32_t index, const LayerHealth& row) const {
        if (index == outside || index == 0) {
            return missing(index == 0 ? "the first layer" : "outside of layers");
        }
        const auto before = layers_.find(index - 1);
        if (before == layers_.end()) {
            return missing("the layer before was not checked");
        }
        const Figure& rms = before->second.row.rms;
        if (!row.rms.value || !rms.value) {
            return missing(row.rms.value ? "the layer before has no rms" : "no rms");
        }
        if (*rms.value == 0) {
            return missing("the layer before is zero");
        }
        return measured(*row.rms.value / *rms.value);
    }

    static void find(std::uint32_t index, const LayerSums& layer, HealthReport& report) {
        const LayerHealth& row = layer.row;
        const std::string where = layer_text(index);
        if (row.growth.value && *row.growth.value > exploding_growth) {
            report.findings.push_back("exploding: " + where + ", rms of " + row.brick + " is " +
                                      number(*row.growth.value) + " times that of the layer before");
        }
        if (row.growth.value && *row.growth.value < vanishing_growth) {
            report.findings.push_back("vanishing: " + where + ", rms of " + row.brick + " is " +
                                      number(*row.growth.value) + " times that of the layer before");
        }
        if (layer.sums.zero != 0) {
            report.findings.push_back("zero: " + where + ", " + row.brick + " is all zero in " +
                                      std::to_string(layer.sums.zero) + " of " + std::to_string(layer.sums.tensors) +
                                      " outputs");
        }
        if (row.saturation.value && *row.saturation.value >= saturated_share) {
            report.findings.push_back("saturated: " + where + ", " + row.saturated_brick + " reaches " +
                                      number(100 * *row.saturation.value) + " % of its type's range");
        }
    }

    static Figure residual_growth(const std::vector<LayerHealth>& layers) {
        const LayerHealth* first = nullptr;
        const LayerHealth* last = nullptr;
        for (const LayerHealth& row : layers) {
            if (row.layer) {
                first = first == nullptr ? &row : first;
                last = &row;
            }
        }
        if (first == last) {
            return missing("fewer than two layers");
        }
        if (!first->rms.value || !last->rms.value || *first->rms.value == 0) {
            return missing("the first or last layer has no rms");
        }
        return measured(*last->rms.value / *first->rms.value);
    }

    const CheckedRun& run_;
    const BrickTable& bricks_;
    std::vector<bool> chosen_;
    std::map<std::uint32_t, LayerSums> layers_;
};

} // namespace

double range_of(DType type) noexcept {
    switch (type) {
    case DType::f32:
        return std::numeric_limits<float>::max();
    case DType::f64:
        return std::numeric_limits<double>::max();
    case DType::f16:
        return 65504;
    case DType::bf16:
        return 3.3895313892515355e38;
    case DType::i8:
    case DType::i32:
        break;
    }
    return std::numeric_limits<double>::infinity();
}

void add_count(HealthReport& report, std::uint64_t counted, bool of_twin) {
    std::uint64_t& found = of_twin ? report.twin_nonfinite : report.nonfinite;
    if (counted <= found) {
        return;
    }
    report.notes.push_back("the " + std::string(of_twin ? "twin" : "run") + " counted " + std::to_string(counted) +
                           (counted == 1 ? " tensor" : " tensors") + " with NaN or Inf, of which its recording holds " +
                           std::to_string(found) + ": keep= or max_size= removed the others, or they were lost" +
                           (counted > recording::most_nonfinite_checks
                                ? ", or came after the " + std::to_string(recording::most_nonfinite_checks) +
                                      " that tensors=nonfinite keeps"
                                : ""));
    found = counted;
}

Result<HealthReport> health(const recording::RecordedRun& source, const recording::RecordedRun* twin_source,
                            const std::string& looked_at) {
    BrickTable bricks;
    const Result<CheckedRun> run = load_run(source, bricks);
    if (!run.ok()) {
        return run.error();
    }
    if (run->checks.empty() && (looked_at.empty() || twin_source != nullptr)) {
        return Error{ErrorCode::not_found, "the recording holds no " + lacking_checks(*source.facts)};
    }
    Examination examination(*run, bricks);
    HealthReport report = examination.report();
    report.looked_at = looked_at;
    if (twin_source != nullptr) {
        const Result<CheckedRun> twin = load_run(*twin_source, bricks);
        if (!twin.ok()) {
            return twin.error();
        }
        examination.compare(*twin, report);
        if (report.compared == 0) {
            return Error{
                ErrorCode::not_found,
                twin->checks.empty()
                    ? "the twin holds no " + lacking_checks(*twin_source->facts)
                    : "the twin has no tensor in common with the recording; run both on the same prompt, with the "
                      "same names of bricks"};
        }
    }
    examination.finish(report, twin_source != nullptr);
    return report;
}

} // namespace plumb::numerics

namespace plumb {
namespace {

/// How many tensors with NaN or Inf the session counted; absent: it did not say, as when it was killed.
std::optional<std::uint64_t> counted_nonfinite(const recording::RunFacts& facts) {
    const std::string text = numerics::description(facts, "nonfinite");
    std::uint64_t count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error == std::errc::result_out_of_range) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    return error == std::errc() && end == text.data() + text.size() ? std::optional(count) : std::nullopt;
}

void add_counts(const recording::RunFacts& facts, HealthReport& report, bool of_twin) {
    if (const std::optional<std::uint64_t> counted = counted_nonfinite(facts)) {
        numerics::add_count(report, *counted, of_twin);
    } else if (numerics::description(facts, "checked").rfind("tensors are ", 0) == 0) {
        report.notes.push_back(
            std::string("the ") + (of_twin ? "twin" : "run") +
            " has not ended, or was killed: how many tensors it looked at is not known; those with NaN or Inf that "
            "reached the recording are listed");
    }
}

} // namespace

Result<HealthReport> health_recording(const std::string& path, const std::string& twin_path) {
    const Result<recording::RecordedRun> run = recording::open_run(path);
    if (!run.ok()) {
        return run.error();
    }
    std::optional<recording::RecordedRun> twin;
    if (!twin_path.empty()) {
        Result<recording::RecordedRun> opened = recording::open_run(twin_path);
        if (!opened.ok()) {
            return opened.error();
        }
        twin = *std::move(opened);
    }
    Result<HealthReport> report = numerics::health(*run, twin ? &*twin : nullptr, numerics::looked_at(*run->facts));
    if (!report.ok()) {
        return report;
    }
    report->path = path;
    report->twin = twin_path;
    add_counts(*run->facts, *report, false);
    if (twin) {
        add_counts(*twin->facts, *report, true);
    }
    numerics::add_notes(*run->facts, path, report->notes);
    if (twin) {
        numerics::add_notes(*twin->facts, twin_path, report->notes);
    }
    return report;
}

namespace {

Result<HealthReport> read_health(const std::vector<std::string>& files, const HealthOptions& options) {
    return health_recording(files.front(), options.against);
}

} // namespace

const answers::Entry& health_answer() {
    static const answers::Entry entry = answers::entry_of<HealthOptions, HealthReport, read_health>(
        "health", "Show whether the tensors of a run are sound: NaN, range, growth, by layer",
        {{"recording", "Recording made with tensors=all or tensors=nonfinite (.plumb)"}});
    return entry;
}

} // namespace plumb
