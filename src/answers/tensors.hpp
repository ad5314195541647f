// SPDX-License-Identifier: Apache-2.0
// Checked tensors as the answers on them show them: words and descriptions. Pure functions; no thread rule.
#pragma once

#include <string>

#include "base/layout.hpp"
#include "numerics/tensor_pair.hpp"
#include "page/describe.hpp"

namespace plumb {

inline Words words_of(DType) {
    static constexpr const char* words[dtype_count] = {"f32", "f64", "f16", "bf16", "i8", "i32"};
    return words;
}
namespace detail { // where describe() looks for it
inline Words words_of(TensorRole) {
    static constexpr const char* words[] = {"output", "input"};
    return words;
}
} // namespace detail
inline Words words_of(Difference) {
    static constexpr const char* words[difference_count] = {"none",  "token", "bits",     "value",
                                                            "shape", "empty", "nonfinite"};
    return words;
}
inline Words words_of(InputState) {
    static constexpr const char* words[] = {"not_recorded", "agree", "disagree"};
    return words;
}

/// "step 3 layer 5 brick attention": what every answer begins with. Layer "-": outside of layers.
[[nodiscard]] std::string place_words(const TensorPlace& place);
/// "decode, position 66, output 0": what else tells this tensor from others. `other`: what the second run is called.
[[nodiscard]] std::string place_details(const TensorPlace& place, const char* other = "B");
/// Three significant digits; "NaN" and "Inf" as they are.
[[nodiscard]] std::string short_number(double value);
/// Whether anything is known of it: squares may overflow, or vanish.
[[nodiscard]] bool known(const Distance& distance) noexcept;
/// "0.12 (0.1 to 0.14)"
[[nodiscard]] std::string distance_words(const Distance& distance);
/// "3 NaN, 1 Inf, first at index 17 of 4,096"; empty: finite.
[[nodiscard]] std::string nonfinite_words(const TensorFacts& facts);

template <class V>
void describe(V& v, const TensorPlace& p) {
    v.type("place", "Where a tensor belongs in its run; what is not known is missing.");
    v("step", p.step, "of the first run");
    v("step_b", p.step_b, "of the second");
    v("phase", p.phase, "");
    v("sequence", p.sequence, "");
    v("position", p.position, "of its first row, in the sequence");
    v("rows", p.rows, "");
    v("layer", p.layer, "");
    v("brick", p.brick, "");
    v("role", p.role, "");
    v("occurrence", p.occurrence, "among those of the same step, layer, brick and role");
}

template <class V>
void describe(V& v, const TensorFacts& f) {
    v.type("facts", "What one fingerprint says.");
    v("dtype", f.dtype, "");
    v("count", f.count, "of elements");
    v("nans", f.nans, "");
    v("positive_infs", f.positive_infs, "");
    v("negative_infs", f.negative_infs, "");
    v("first_nonfinite", f.first_nonfinite, "index; missing: all are finite", f.first_nonfinite != no_index);
    v("largest", page::number(f.largest), "|x|");
}

template <class V>
void describe(V& v, const Distance& d) {
    v.type("distance", "The relative L2 distance, and the bounds of the estimate.");
    v("estimate", page::number(d.estimate), "");
    v("low", page::number(d.low), "");
    v("high", page::number(d.high), "");
}

/// The fields of a pair, for what has more of them.
template <class V>
void describe_pair(V& v, const TensorPair& p) {
    v("place", p.place, "");
    v("a", p.a, "");
    v("b", p.b, "");
    v("difference", p.difference, "");
    v("distance", p.distance, "");
}
template <class V>
void describe(V& v, const TensorPair& p) {
    v.type("pair", "The same tensor in both.");
    describe_pair(v, p);
}

} // namespace plumb
