// SPDX-License-Identifier: Apache-2.0
// Whether the tensors of a run are sound, layer by layer; with a twin in full precision, how far from it.
// Plain values, owned by the caller; any thread, one at a time per run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answers/tensors.hpp"
#include "numerics/checked_run.hpp"
#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/outcome.hpp"
#include "plumb/result.hpp"

namespace plumb {

/// One layer over all steps. layer absent: tensors outside of layers.
struct LayerHealth {
    std::optional<std::uint32_t> layer;
    std::uint64_t tensors = 0;   // outputs and inputs looked at
    std::uint64_t nonfinite = 0; // of those, with NaN or Inf
    std::string brick;  // whose output the figures from rms to growth are of: the residual stream where checked
    Figure rms;         // sqrt(mean x^2) over its outputs
    Figure l2;          // mean over its outputs
    Figure growth;      // rms / rms of the layer before, where that was checked
    double largest = 0; // |x| in any tensor of the layer
    std::string largest_brick;
    Figure saturation; // share of the element type's range that |x| reached, at most; floating tensors
    std::string saturated_brick;
    bool twin = false;     // there is one; the figures that follow are of the same outputs against it
    Figure relative_error; // L2, over all steps
    Figure cosine;         // the least
    Figure signal_to_noise_db;
};

struct PlacedFacts {
    TensorPlace place;
    TensorFacts facts;
};

struct FirstNonfinite : PlacedFacts {
    InputState inputs = InputState::not_recorded; // agree: all finite; disagree: some are not
    std::vector<PlacedFacts> input_tensors;
};

struct HealthReport {
    std::string path, twin; // twin empty: none
    std::uint64_t tensors = 0, steps = 0;
    std::uint64_t nonfinite = 0; // tensors with NaN or Inf; by the run's own count where that is more
    std::string looked_at;       // what the run says it looked at: "1,234 tensors, all finite"
    std::optional<FirstNonfinite> first_nonfinite;
    std::vector<LayerHealth> layers;   // by layer, those outside of layers last
    Figure residual_growth;            // rms of the last layer that was checked / of the first
    std::vector<std::string> findings; // vanishing, exploding, saturated: sentences
    std::uint64_t compared = 0;        // pairs with the twin
    std::uint64_t twin_nonfinite = 0;  // tensors of the twin with NaN or Inf
    std::vector<TensorPair> worst; // outputs furthest from the twin's, the worst first; a NaN is worse than anything
    std::vector<std::string> notes;

    [[nodiscard]] bool finite() const noexcept { return nonfinite == 0 && twin_nonfinite == 0; }
};

/// Errors: not_found when a recording holds no checks, or none that the twin has.
[[nodiscard]] Result<HealthReport> health_recording(const std::string& path, const std::string& twin = {});

namespace numerics {

// What counts as a finding (docs/reference/diverge.md).
inline constexpr double exploding_growth = 100;  // of a layer's rms over that of the layer before
inline constexpr double vanishing_growth = 0.01; // the same
inline constexpr double saturated_share = 0.5;   // of the element type's range: one doubling from Inf
inline constexpr std::size_t most_worst = 16;

/// `twin` may be null. Errors: not_found when the run holds no checks and `looked_at` is empty, or when the twin has none
/// in common; out_of_memory beyond most_checks. `looked_at`: what the run says of tensors that left no check.
[[nodiscard]] Result<HealthReport> health(const recording::RecordedRun& run, const recording::RecordedRun* twin,
                                          const std::string& looked_at);

/// What the run, or the twin, counted itself, where that is more than the checks show: an entry may be gone.
void add_count(HealthReport& report, std::uint64_t counted, bool of_twin);

/// The largest finite number of a floating type; infinite for integers, which reach their limits in good health.
[[nodiscard]] double range_of(DType type) noexcept;

} // namespace numerics

struct HealthOptions {
    std::string against;
};

template <class V>
void describe(V& v, HealthOptions& o) {
    v("against", o.against, "Recording of the same run in full precision: error, cosine, SNR", {.value = "FILE"});
}

template <class V>
void describe(V& v, const PlacedFacts& p) {
    v.type("placed facts", "A tensor of the run.");
    v("place", p.place, "");
    v("facts", p.facts, "");
}

template <class V>
void describe(V& v, const LayerHealth& r) {
    v.type("layer health", "One layer over all steps.");
    v("layer", r.layer, "missing: tensors outside of layers");
    v("tensors", r.tensors, "outputs and inputs looked at");
    v("nonfinite", r.nonfinite, "of those, with NaN or Inf");
    v("brick", r.brick,
      "whose outputs `rms`, `l2`, `growth` and the comparison with the twin are of: the residual stream, else the last "
      "output");
    v("rms", r.rms, "sqrt(mean x²) over its outputs");
    v("l2", r.l2, "mean over its outputs");
    v("growth", r.growth, "`rms` / that of the layer before, where that was checked");
    v("largest", page::number(r.largest), "|x| in any tensor of the layer");
    v("largest_brick", r.largest_brick, "where");
    v("saturation", r.saturation, "largest share of its element type's range that a tensor reached");
    v("saturated_brick", r.saturated_brick, "where");
    v("relative_error", r.relative_error, "only with a twin: L2, over all steps", r.twin);
    v("cosine", r.cosine, "only with a twin: the least", r.twin);
    v("signal_to_noise_db", r.signal_to_noise_db,
      "only with a twin: -20 log10 of the error. Absent `not finite` is the worst there is, absent `identical` the best",
      r.twin);
}

template <class V>
void describe(V& v, const FirstNonfinite& f) {
    v.type("first nonfinite", "The first tensor with NaN or Inf.");
    v("place", f.place, "");
    v("facts", f.facts, "");
    v("inputs", f.inputs, "of that call; `agree`: all are finite, `disagree`: some are not");
    v("input_tensors", f.input_tensors, "of that call");
}

template <class V>
void describe(V& v, const HealthReport& r) {
    const bool twin = !r.twin.empty();
    v.type("health", "Whether the tensors of a run are sound (`plumb health`).");
    v("finite", r.finite(), "no NaN and no Inf, in the twin neither; else the command exits with 1");
    v("path", r.path, "the recording");
    v("twin", r.twin, "the recording of `--against`; empty without");
    v("tensors", r.tensors, "checks");
    v("steps", r.steps, "of those");
    v("nonfinite", r.nonfinite, "tensors with NaN or Inf; by the run's own count where that is more");
    v("looked_at", r.looked_at,
      "what the run said it looked at; with `tensors=nonfinite` sound tensors leave nothing else");
    v("first_nonfinite", r.first_nonfinite, "");
    v("layers", r.layers, "by layer, those outside of layers last");
    v("residual_growth", r.residual_growth, "`rms` of the last layer that was checked / of the first one");
    v("findings", r.findings, "vanishing, exploding, zero, saturated (diverge.md has the limits)");
    v("compared", r.compared, "only with a twin: pairs", twin);
    v("twin_nonfinite", r.twin_nonfinite, "only with a twin: its tensors with NaN or Inf", twin);
    v("worst", r.worst,
      "only with a twin: the outputs furthest from its own, the worst first; `a` is the run, `b` the twin", twin);
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const HealthReport&) { return "plumb.health/1"; }
inline Outcome outcome_of(const HealthReport& report) noexcept {
    return report.finite() ? Outcome::pass : Outcome::fail;
}
[[nodiscard]] page::Page page_of(const HealthReport& report, const TextOptions& options);

} // namespace plumb
