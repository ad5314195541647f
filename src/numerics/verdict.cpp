// SPDX-License-Identifier: Apache-2.0
#include "numerics/verdict.hpp"

#include <cmath>
#include <limits>
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

double rank(const Distance& distance) { return std::isnan(distance.low) ? infinite : distance.low; }

} // namespace

WholeTensor whole_of(const CheckedRun& run, const std::vector<std::uint32_t>& pieces) {
    WholeTensor whole;
    whole.check = run.checks[pieces.front()].check;
    recording::TensorCheck& all = whole.check;
    for (std::size_t i = 1; i < pieces.size(); ++i) {
        const recording::TensorCheck& next = run.checks[pieces[i]].check;
        const std::uint64_t border = all.first_index + all.fingerprint.count;
        if (next.first_index != border || next.dtype != all.dtype || next.level != all.level || next.shape.empty() ||
            all.shape.empty() || next.fingerprint.sketch.size() != all.fingerprint.sketch.size()) {
            whole.joins = false;
            return whole;
        }
        whole.hash_known = whole.hash_known && border % row_elements == 0;
        all.fingerprint = join(all.fingerprint, next.fingerprint);
        all.shape.front() += next.shape.front();
        all.argmax = next.argmax;
        all.margin = next.margin;
    }
    return whole;
}

Tolerance tolerance_for(const CheckedRun& a, const CheckedRun& b, const DivergeOptions& options) {
    Tolerance tolerance;
    tolerance.exact = options.exact;
    if (options.tolerance) {
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
    if (!whole_a.joins || !whole_b.joins || x.count != y.count || a.first_index != b.first_index) {
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
    TensorVerdict verdict;
    const bool hash_known = whole_a.hash_known && whole_b.hash_known;
    verdict.distance = relative_distance(x, y);
    verdict.identical = hash_known && a.dtype == b.dtype && x.hash == y.hash;
    if (verdict.identical) {
        return verdict;
    }
    const bool exact = tolerance.exact || !is_floating(a.dtype) || !is_floating(b.dtype);
    if (exact && hash_known) {
        verdict.difference = Difference::bits;
        return verdict;
    }
    verdict.hash_unknown = exact;
    // Written so that a NaN fails, and a distance that nobody could estimate.
    const double allowed = exact ? as_good_as_exact : tolerance.floating;
    if (!(verdict.distance.low <= allowed && verdict.distance.estimate < infinite)) {
        verdict.difference = exact ? Difference::bits : Difference::value;
    }
    return verdict;
}

bool worse(Difference x, const Distance& distance_x, Difference y, const Distance& distance_y) noexcept {
    const bool lost_x = x == Difference::nonfinite;
    const bool lost_y = y == Difference::nonfinite;
    return lost_x != lost_y ? lost_x : rank(distance_x) > rank(distance_y);
}

} // namespace plumb::numerics
