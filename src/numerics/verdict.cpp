// SPDX-License-Identifier: Apache-2.0
#include "numerics/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace plumb::numerics {
namespace {

constexpr std::uint64_t row_elements = 32; // of the definition: pieces join exactly at its multiples
/// Where exactness is asked for and hashes cannot tell: rounding of the sums alone stays far below it.
constexpr double as_good_as_exact = 1e-12;
constexpr double infinite = std::numeric_limits<double>::infinity();

bool is_floating(DType type) { return type != DType::i8 && type != DType::i32; }

int coarseness(DType type) {
    switch (type) {
    case DType::f64:
        return 1;
    case DType::f32:
        return 2;
    case DType::f16:
        return 3;
    case DType::bf16:
        return 4;
    case DType::i8:
    case DType::i32:
        break;
    }
    return 0;
}

TensorVerdict apart(Difference difference) { return {difference, {infinite, infinite, infinite}, false, false, false}; }

bool same_nonfinite(const Fingerprint& a, const Fingerprint& b) {
    return a.nans == b.nans && a.positive_infs == b.positive_infs && a.negative_infs == b.negative_infs;
}

/// One of them was only looked at for NaN and Inf; REQUIRES: both are finite.
TensorVerdict judge_largest(const recording::TensorCheck& a, const recording::TensorCheck& b,
                            const Tolerance& tolerance) {
    const double x = facts_of(a).largest;
    const double y = facts_of(b).largest;
    const double distance = x == y ? 0 : std::fabs(x - y) / std::fabs(x);
    TensorVerdict verdict;
    verdict.weak = true;
    verdict.distance = {distance, distance, distance};
    if (!(distance <= (tolerance.exact ? 0 : tolerance.floating))) {
        verdict.difference = tolerance.exact ? Difference::bits : Difference::value;
    }
    return verdict;
}

Difference difference_of(const Distance& distance, bool exact, double allowed) {
    // Written so that a NaN fails, and a distance that nobody could estimate.
    const bool near = distance.low <= allowed && distance.estimate < infinite;
    return near ? Difference::none : exact ? Difference::bits : Difference::value;
}

/// Elements that are numbered otherwise have another hash and another sketch. Extremes and norms are no further apart than
/// the tensors are. REQUIRES: as many NaN and Inf in both.
TensorVerdict judge_unnumbered(Fingerprint x, Fingerprint y, bool exact, double allowed) {
    x.first_nonfinite = y.first_nonfinite = no_index;
    x.sketch.clear();
    y.hash = ~x.hash;
    const double extremes = std::max(std::fabs(x.min - y.min), std::fabs(x.max - y.max)) / std::sqrt(x.sum_of_squares);
    TensorVerdict verdict;
    verdict.unnumbered = true;
    verdict.distance = relative_distance(x, y);
    verdict.distance.low = extremes > verdict.distance.low ? extremes : verdict.distance.low; // NaN: nothing is finite
    if (std::isfinite(verdict.distance.estimate)) {
        verdict.distance.estimate = verdict.distance.low;
    }
    verdict.difference = difference_of(verdict.distance, exact, allowed);
    return verdict;
}

auto rank(Difference difference, const Distance& distance) {
    return std::tuple(difference == Difference::nonfinite, difference != Difference::none,
                      std::isnan(distance.low) ? infinite : distance.low);
}

} // namespace

WholeTensor whole_of(const CheckedRun& run, const std::vector<std::uint32_t>& pieces) {
    WholeTensor whole;
    whole.check = run.checks[pieces.front()].check;
    recording::TensorCheck& all = whole.check;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        const recording::TensorCheck& next = run.checks[pieces[i]].check;
        const std::uint64_t border = all.first_index + all.fingerprint.count;
        if (next.dtype != all.dtype || next.level != all.level || next.shape.empty() || all.shape.empty() ||
            next.fingerprint.sketch.size() != all.fingerprint.sketch.size()) {
            whole.joins = false;
            return whole;
        }
        whole.numbered = whole.numbered && next.first_index == border;
        whole.hash_known = whole.hash_known && border % row_elements == 0;
        Fingerprint piece = next.fingerprint;
        for (std::uint64_t* index : {&piece.first_nonfinite, &piece.largest}) {
            *index += *index == no_index ? 0 : border - next.first_index;
        }
        all.fingerprint = join(all.fingerprint, piece);
        all.shape.front() += next.shape.front();
        all.argmax = next.argmax;
        all.margin = next.margin;
    }
    return whole;
}

Tolerance tolerance_for(const CheckedRun& a, const CheckedRun& b, const DivergeOptions& options) {
    Tolerance tolerance;
    tolerance.exact = options.exact;
    tolerance.given = options.tolerance.has_value();
    if (tolerance.given) {
        tolerance.floating = *options.tolerance;
        return tolerance;
    }
    int coarsest = 0;
    for (const CheckedRun* run : {&a, &b}) {
        for (const RunCheck& check : run->checks) {
            if (coarseness(check.check.dtype) > coarsest) {
                coarsest = coarseness(check.check.dtype);
                tolerance.of = check.check.dtype;
            }
        }
    }
    tolerance.floating = tolerance.of ? default_tolerance(*tolerance.of) : 0;
    return tolerance;
}

TensorVerdict judge(const WholeTensor& whole_a, const WholeTensor& whole_b, const Tolerance& tolerance) {
    const recording::TensorCheck& a = whole_a.check;
    const recording::TensorCheck& b = whole_b.check;
    const Fingerprint& x = a.fingerprint;
    const Fingerprint& y = b.fingerprint;
    if (x.count == 0 || y.count == 0) {
        return apart(Difference::empty);
    }
    if (!whole_a.joins || !whole_b.joins || x.count != y.count) {
        return apart(Difference::shape);
    }
    if (!same_nonfinite(x, y)) {
        return apart(Difference::nonfinite);
    }
    if (a.level == recording::CheckLevel::nonfinite || b.level == recording::CheckLevel::nonfinite) {
        return judge_largest(a, b, tolerance);
    }
    if (x.sketch.size() != y.sketch.size()) {
        return apart(Difference::shape);
    }
    const bool exact = tolerance.exact || !is_floating(a.dtype) || !is_floating(b.dtype);
    const double allowed = exact ? as_good_as_exact : tolerance.floating;
    if (!whole_a.numbered || !whole_b.numbered || a.first_index != b.first_index) {
        return judge_unnumbered(x, y, exact, allowed);
    }
    TensorVerdict verdict;
    const bool hash_known = whole_a.hash_known && whole_b.hash_known;
    verdict.distance = relative_distance(x, y);
    verdict.identical = hash_known && a.dtype == b.dtype && x.hash == y.hash;
    if (verdict.identical) {
        return verdict;
    }
    if (exact && hash_known) {
        verdict.difference = Difference::bits;
        return verdict;
    }
    verdict.hash_unknown = exact;
    verdict.difference = difference_of(verdict.distance, exact, allowed);
    return verdict;
}

bool worse(Difference x, const Distance& distance_x, Difference y, const Distance& distance_y) noexcept {
    return rank(x, distance_x) > rank(y, distance_y);
}

} // namespace plumb::numerics
