// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "plumb/fingerprint.hpp"

namespace plumb {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

bool same_nonfinite(const Fingerprint& a, const Fingerprint& b) {
    return a.nans == b.nans && a.positive_infs == b.positive_infs && a.negative_infs == b.negative_infs &&
           a.first_nonfinite == b.first_nonfinite;
}
/// One hash can be that of two element types, whose bytes agree and whose values do not: f16 and bf16.
bool same_values(const Fingerprint& a, const Fingerprint& b) {
    const auto same = [](double x, double y) {
        return x == y || (std::isnan(x) && std::isnan(y));
    };
    return a.hash == b.hash && same(a.min, b.min) && same(a.max, b.max) && a.largest == b.largest;
}
bool all_zero(const Fingerprint& a) { return a.min == 0 && a.max == 0; }

/// Squares that neither overflow nor vanish.
bool has_norm(const Fingerprint& a) {
    return std::isfinite(a.sum_of_squares) && (a.sum_of_squares > 0 || all_zero(a) || std::isnan(a.min));
}

/// What the sketch of a vector says about the square of its norm.
struct SketchNorm {
    double square = 0;
    double largest_square = 0; // of a bucket
};
SketchNorm norm_of(const Fingerprint& a, double sign, const Fingerprint& b) {
    SketchNorm norm;
    for (std::size_t i = 0; i < a.sketch.size(); ++i) {
        const double bucket = a.sketch[i] + sign * b.sketch[i];
        norm.square += bucket * bucket;
        norm.largest_square = std::max(norm.largest_square, bucket * bucket);
    }
    return norm;
}

/// k over the 99.5 % and the 0.5 % quantile of chi-square with k degrees of freedom.
struct ChiSquareFactors {
    double low, high;
};
std::optional<ChiSquareFactors> factors_of(std::size_t buckets) {
    switch (buckets) {
    case 32:
        return ChiSquareFactors{32 / 56.32811, 32 / 15.13403};
    case 64:
        return ChiSquareFactors{64 / 96.87814, 64 / 38.60978};
    case 128:
        return ChiSquareFactors{128 / 172.95752, 128 / 90.54310};
    case 256:
        return ChiSquareFactors{256 / 318.03340, 256 / 201.47360};
    default:
        return std::nullopt;
    }
}

/// What rounding can make of the distance, in units of the norms: the sums of a sketch have about a row's worth of terms
/// each, and err like a random walk; eight standard deviations.
double rounding(const Fingerprint& a) { return 0x1p-50 * std::sqrt(static_cast<double>(a.count) / 32 + 1); }

} // namespace

Fingerprint join(const Fingerprint& a, const Fingerprint& b) {
    if (a.count == 0 || b.count == 0) {
        return a.count == 0 ? b : a;
    }
    Fingerprint whole = a;
    whole.count += b.count;
    whole.nans += b.nans;
    whole.positive_infs += b.positive_infs;
    whole.negative_infs += b.negative_infs;
    whole.first_nonfinite = std::min(a.first_nonfinite, b.first_nonfinite); // no_index is the largest
    const auto magnitude = [](const Fingerprint& part) {
        return part.largest == no_index ? -1 : std::max(-part.min, part.max);
    };
    if (magnitude(b) > magnitude(a) || (magnitude(b) == magnitude(a) && b.largest < a.largest)) {
        whole.largest = b.largest;
    }
    whole.min = std::fmin(a.min, b.min); // a NaN is nothing
    whole.max = std::fmax(a.max, b.max);
    whole.hash += b.hash;
    whole.sum += b.sum;
    whole.sum_of_squares += b.sum_of_squares;
    if (a.sketch.size() != b.sketch.size()) {
        whole.sketch.clear(); // of no use any more
    }
    for (std::size_t i = 0; i < whole.sketch.size(); ++i) {
        whole.sketch[i] += b.sketch[i];
    }
    return whole;
}

Distance relative_distance(const Fingerprint& a, const Fingerprint& b) {
    if (a.count != b.count || !same_nonfinite(a, b)) {
        return {infinity, infinity, infinity};
    }
    if (same_values(a, b) || (all_zero(a) && all_zero(b))) {
        return {0, 0, 0};
    }
    if (!has_norm(a) || !has_norm(b)) {
        return {infinity, 0, infinity};
    }
    const double norm = std::sqrt(a.sum_of_squares), other = std::sqrt(b.sum_of_squares);
    if (norm == 0) {
        return other == 0 ? Distance{0, 0, 0} : Distance{infinity, infinity, infinity};
    }
    // Lengths alone bound the distance; a sketch says more.
    const double ratio = other / norm, slack = rounding(a) * (1 + ratio);
    Distance distance{1, std::max(0.0, std::fabs(1 - ratio) - slack), 1 + ratio + slack};
    const std::optional<ChiSquareFactors> factors = factors_of(a.sketch.size());
    if (factors && a.sketch.size() == b.sketch.size()) {
        const SketchNorm difference = norm_of(a, -1, b);
        distance.estimate = std::sqrt(difference.square) / norm;
        // Chi-square is for many small differences. Of a few large ones two may share a bucket: they cancel, or count double.
        const double low =
            std::min(difference.square * factors->low, difference.square - difference.largest_square / 2);
        const double high =
            std::max(difference.square * factors->high, difference.square + 2 * difference.largest_square);
        distance.low = std::max(distance.low, std::sqrt(low) / norm - slack);
        // An empty sketch of a difference: what there is has cancelled, and only the lengths are left.
        if (difference.square > 0) {
            distance.high = std::min(distance.high, std::sqrt(high) / norm + slack);
        }
    }
    distance.estimate = std::clamp(distance.estimate, distance.low, std::max(distance.low, distance.high));
    distance.high = std::max(distance.low, distance.high);
    return distance;
}

double cosine(const Fingerprint& a, const Fingerprint& b) {
    const double product = std::sqrt(a.sum_of_squares) * std::sqrt(b.sum_of_squares);
    if (a.count != b.count || !a.finite() || !b.finite() || !(product > 0) || !std::isfinite(product) ||
        a.sketch.size() != b.sketch.size() || a.sketch.empty()) {
        return std::numeric_limits<double>::quiet_NaN();
    }
    if (same_values(a, b)) {
        return 1;
    }
    // From |a - b| or |a + b|: the shorter one is known to fewer units of the norms.
    const double lengths = a.sum_of_squares + b.sum_of_squares;
    const double difference = norm_of(a, -1, b).square, sum = norm_of(a, 1, b).square;
    const double twice = difference <= sum ? lengths - difference : sum - lengths;
    return std::clamp(twice / (2 * product), -1.0, 1.0);
}

} // namespace plumb
