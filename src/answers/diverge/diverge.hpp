// SPDX-License-Identifier: Apache-2.0
// The first operation where two recorded runs part, as an answer. What is found: numerics/diverge.hpp. Any thread.
#pragma once

#include <optional>
#include <string>

#include "answers/tensors.hpp"
#include "numerics/diverge.hpp"
#include "page/options.hpp"
#include "page/page.hpp"
#include "plumb/outcome.hpp"

namespace plumb {

enum class Expectation : std::uint8_t { exact };
inline Words words_of(Expectation) {
    static constexpr const char* words[] = {"exact"};
    return words;
}

/// What may be asked for on the command line.
struct DivergeQuestion {
    std::optional<double> tolerance;
    std::optional<Expectation> expect;
};

/// Which of two runs, and what of it.
enum class Side : std::uint8_t { a, b };
inline Words words_of(Side) {
    static constexpr const char* words[] = {"a", "b"};
    return words;
}
enum class Lacking : std::uint8_t { tensor, step };
inline Words words_of(Lacking) {
    static constexpr const char* words[] = {"tensor", "step"};
    return words;
}

template <class V>
void describe(V& v, DivergeQuestion& q) {
    v("tolerance", q.tolerance, "Relative L2 distance that counts as the same (default: by the coarsest element type)");
    v("expect", q.expect, "exact: all bits must agree");
}

template <class V>
void describe(V& v, const FirstDivergence& f) {
    v.type("first divergence", "The first divergent tensor in order of execution.");
    describe_pair(v, f.tensor);
    v("inputs", f.inputs, "of that call; `agree`: it is the operation itself, `disagree`: handed down");
    v("input_tensors", f.input_tensors, "of that call");
    v.group("preceded_by", "the output checked last before it, where `inputs` disagree; it agrees",
            f.preceded_by.has_value(), [&](auto& inner) { inner("place", f.preceded_by.value_or(TensorPlace{}), ""); });
    const bool tokens = f.token_a && f.token_b;
    v("token_a", f.token_a, "difference `token`: the index of the largest logit", tokens);
    v("token_b", f.token_b, "", tokens);
}

template <class V>
void describe(V& v, const LayerDistance& l) {
    v.type("layer distance", "The residual stream of a layer, else its last output, at the first divergent step.");
    v("layer", l.layer, "");
    describe_pair(v, l.tensor);
}

template <class V>
void describe(V& v, const TokenFlip& f) {
    v.type("flip", "Logits whose largest value is that of another token.");
    v("place", f.place, "");
    v("token_a", f.token_a, "the index of the largest");
    v("token_b", f.token_b, "");
    v("margin_a", page::number(f.margin_a), "to the second largest");
    v("margin_b", page::number(f.margin_b), "");
}

template <class V>
void describe(V& v, const MissingCount& c) {
    v.type("missing count", "What one run has and the other lacks.");
    v("tensors", c.tensors, "in steps that both have");
    v("steps", c.steps, "whole ones");
    v("step_tensors", c.step_tensors, "in those");
}

template <class V>
void describe(V& v, const MissingTensor& m) {
    v.type("missing", "A tensor, or a step, that one run lacks.");
    v("only_in", m.only_in_a ? Side::a : Side::b, "");
    v("what", m.place.brick.empty() ? Lacking::step : Lacking::tensor, "");
    v("place", m.place, "");
}

template <class V>
void describe(V& v, const DivergeReport& r) {
    v.type("diverge", "Where two runs part (`plumb diverge`). A number that is not finite is `{\"absent\": \"NaN\"}`, "
                      "`\"Inf\"` or `\"-Inf\"`.");
    v("same", r.same(), "nothing diverges and nothing is missing; else the command exits with 1");
    v("path_a", r.path_a, "the reference");
    v("path_b", r.path_b, "");
    v("tensors_a", r.tensors_a, "checks of tensors that it holds");
    v("tensors_b", r.tensors_b, "");
    v("steps_a", r.steps_a, "of those");
    v("steps_b", r.steps_b, "");
    v("compared", r.compared, "pairs");
    v("identical", r.identical, "of those, bit for bit the same");
    v("divergent", r.divergent, "of those, beyond the tolerance");
    v("exact", r.exact, "all bits had to agree (`--expect exact`)");
    v("tolerance", r.tolerance, "relative L2 distance that counts as the same, of floating tensors");
    v("tolerance_of", r.tolerance_of,
      "the coarsest element type of both runs, which set it; missing where `--tolerance` did, and where no tensor is of "
      "a floating type");
    v("first", r.first, "missing where nothing diverges");
    v("worst", r.worst,
      "the furthest apart of the divergent ones, else of all; one with more NaN or Inf is worse than any distance");
    v("layers", r.layers, "amplification at the first divergent step");
    v("flip_count", r.flip_count, "logits whose largest value is that of another token");
    v("flips", r.flips, "the first 64 of those");
    v("only_in_a", r.only_in_a, "what B lacks");
    v("only_in_b", r.only_in_b, "what A lacks");
    v("missing", r.missing, "the first 64 of those");
    v("chunking", r.chunking,
      "tensors of the last rows of a prefill step where the other run's prefill has no border: no failure");
    v("other_sequences", r.other_sequences, "tensors of sequences that one run alone has: not compared");
    v("notes", r.notes, "sentences the reader must know");
}

constexpr const char* schema_of(const DivergeReport&) { return "plumb.diverge/1"; }
inline Outcome outcome_of(const DivergeReport& report) noexcept {
    return report.same() ? Outcome::pass : Outcome::fail;
}
[[nodiscard]] page::Page page_of(const DivergeReport& report, const TextOptions& options);

} // namespace plumb
