// SPDX-License-Identifier: Apache-2.0
// The promise of relative_distance(): over random pairs with a planted distance, how often the true one lies in the interval
// (docs/reference/fingerprints.md states the rates that this prints).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <set>

#include "plumb/fingerprint.hpp"

namespace plumb {
namespace {

using Values = std::vector<double>;
using Random = std::mt19937_64;

/// A change to `values` of any length; scaled to the planted distance afterwards.
struct Change {
    const char* name;
    std::function<Values(const Values& values, std::size_t width, Random& random)> make;
    bool scaled = true; // false: the distance is what it is
};

double normal(Random& random) { return std::normal_distribution<double>()(random); }

/// n normal values: a random piece of a million, since drawing each one anew would be most of the time of these tests.
Values normals(std::size_t n, Random& random) {
    static const Values pool = [] {
        Random own(20'240'602);
        Values values(1U << 20U);
        std::generate(values.begin(), values.end(), [&] { return normal(own); });
        return values;
    }();
    const auto begin = pool.begin() + static_cast<std::ptrdiff_t>(random() % (pool.size() - n));
    return {begin, begin + static_cast<std::ptrdiff_t>(n)};
}

Values some_equal(std::size_t n, std::size_t changed, Random& random) {
    Values change(n, 0.0);
    for (std::size_t i = 0; i < changed; ++i) {
        change[random() % n] = random() % 2 == 0 ? 1 : -1;
    }
    return change;
}

Values difference(const Values& from, const Values& to) {
    Values change(from.size());
    std::transform(to.begin(), to.end(), from.begin(), change.begin(), std::minus<>());
    return change;
}

std::vector<Change> changes() {
    const auto dense = [](const Values& values, std::size_t, Random& random) {
        return normals(values.size(), random);
    };
    const auto few = [](std::size_t count) {
        return [count](const Values& values, std::size_t, Random& random) {
            return some_equal(values.size(), count, random);
        };
    };
    const auto uneven = [](const Values& values, std::size_t, Random& random) {
        Values change(values.size(), 0.0);
        for (std::size_t i = 0; i < 20; ++i) {
            change[random() % change.size()] = std::exp(2 * normal(random));
        }
        return change;
    };
    const auto column = [](const Values& values, std::size_t width, Random& random) {
        Values change(values.size(), 0.0);
        for (std::size_t i = random() % width; i < change.size(); i += width) {
            change[i] = 1;
        }
        return change;
    };
    const auto head = [](const Values& values, std::size_t width, Random& random) {
        Values change(values.size(), 0.0);
        const std::size_t begin = random() % (width / 64) * 64;
        for (std::size_t i = 0; i < change.size(); ++i) {
            change[i] = i % width >= begin && i % width < begin + 64 ? normal(random) : 0;
        }
        return change;
    };
    const auto constant = [](const Values& values, std::size_t, Random&) {
        return Values(values.size(), 1.0);
    };
    const auto scale = [](const Values& values, std::size_t, Random&) {
        return values;
    };
    const auto shuffle = [](const Values& values, std::size_t, Random& random) {
        Values moved = values;
        std::shuffle(moved.begin(), moved.end(), random);
        return difference(values, moved);
    };
    const auto rotate = [](const Values& values, std::size_t width, Random&) {
        Values moved = values;
        std::rotate(moved.begin(), moved.begin() + static_cast<std::ptrdiff_t>(width), moved.end());
        return difference(values, moved);
    };
    const auto swap = [](const Values& values, std::size_t, Random& random) {
        Values moved = values;
        std::swap(moved[random() % moved.size()], moved[random() % moved.size()]);
        return difference(values, moved);
    };
    return {{"dense", dense},
            {"single element", few(1)},
            {"two equal elements", few(2)},
            {"three equal", few(3)},
            {"four equal", few(4)},
            {"six equal", few(6)},
            {"ten equal", few(10)},
            {"twenty uneven", uneven},
            {"a column", column},
            {"a head", head},
            {"all by the same", constant},
            {"scaled", scale},
            {"shuffled", shuffle, false},
            {"rows rotated", rotate, false},
            {"two swapped", swap, false}};
}

/// As bytes of f32 or f64, and the values they then have.
template <class T>
std::vector<T> rounded(Values& values) {
    std::vector<T> stored(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        stored[i] = static_cast<T>(values[i]);
        values[i] = static_cast<double>(stored[i]);
    }
    return stored;
}

struct Rate {
    std::size_t pairs = 0, inside = 0;
};

/// One pair: true where the interval holds the true distance. Counts nothing where rounding left no difference.
template <class T>
void try_pair(const Change& change, double planted, unsigned buckets, Random& random, Rate& rate) {
    constexpr std::size_t widths[] = {64, 128, 896};
    const std::size_t width = widths[random() % 3], n = width * (1 + random() % 24);
    constexpr double means[] = {0, 0, 3};
    const double mean = means[random() % 3];
    Values values = normals(n, random);
    for (double& value : values) {
        value += mean;
    }
    if (random() % 4 == 0) {
        values[random() % n] *= 1000; // one massive activation
    }
    std::vector<T> a = rounded<T>(values);
    const Values wanted = change.make(values, width, random);
    const double norm = std::sqrt(std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
    const double size = std::sqrt(std::inner_product(wanted.begin(), wanted.end(), wanted.begin(), 0.0));
    if (size == 0) {
        return;
    }
    Values changed = values;
    for (std::size_t i = 0; i < n; ++i) {
        changed[i] += wanted[i] * (change.scaled ? planted * norm / size : 1.0);
    }
    std::vector<T> b = rounded<T>(changed);
    long double squares = 0, all = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const long double d = static_cast<long double>(changed[i]) - static_cast<long double>(values[i]);
        squares += d * d;
        all += static_cast<long double>(values[i]) * static_cast<long double>(values[i]);
    }
    const auto truth = static_cast<double>(std::sqrt(squares / all));
    const DType type = sizeof(T) == 4 ? DType::f32 : DType::f64;
    FingerprintOptions options;
    options.buckets = buckets;
    const Distance found = relative_distance(*fingerprint_of(tensor(a.data(), type, {n}), options),
                                             *fingerprint_of(tensor(b.data(), type, {n}), options));
    if (truth == 0) {
        EXPECT_TRUE(a != b || (found.estimate == 0 && found.low == 0 && found.high == 0)) << change.name;
        return;
    }
    EXPECT_GT(found.high, 0) << change.name;
    EXPECT_LE(found.low, found.estimate);
    EXPECT_LE(found.estimate, found.high);
    ++rate.pairs;
    rate.inside += found.low <= truth && truth <= found.high ? 1U : 0U;
}

/// Every kind of change at every distance from 1e-8 to 1; at least 95 of 100 for each kind.
void expect_rates(std::size_t pairs) {
    Random random(20'240'601);
    const std::vector<Change> kinds = changes();
    Rate all;
    for (const unsigned buckets : {32U, 128U}) {
        for (const Change& change : kinds) {
            Rate rate;
            const std::size_t tries = pairs / (2 * kinds.size());
            for (std::size_t i = 0; i < tries; ++i) {
                const double planted = std::pow(10.0, -8.0 + 8.0 * static_cast<double>(i) / static_cast<double>(tries));
                if (i % 2 == 0) {
                    try_pair<float>(change, planted, buckets, random, rate);
                } else {
                    try_pair<double>(change, planted, buckets, random, rate);
                }
            }
            const double share = static_cast<double>(rate.inside) / static_cast<double>(rate.pairs);
            std::printf("  %-20s %3u buckets: %6zu pairs, %.2f %% inside\n", change.name, buckets, rate.pairs,
                        100 * share);
            // 3.5 standard deviations of the count of misses, where few pairs were made.
            const double noise = 3.5 * std::sqrt(0.95 * 0.05 / static_cast<double>(rate.pairs));
            EXPECT_GE(share, 0.95 - noise) << change.name << ", " << buckets << " buckets";
            all.pairs += rate.pairs;
            all.inside += rate.inside;
        }
    }
    const double share = static_cast<double>(all.inside) / static_cast<double>(all.pairs);
    std::printf("  all: %zu pairs, %.2f %% inside\n", all.pairs, 100 * share);
    EXPECT_GE(share, 0.95);
}

TEST(FingerprintDistance, T9_the_true_distance_lies_in_the_interval_of_95_of_100_pairs) { expect_rates(6'000); }
TEST(FingerprintDistance, slow_the_rate_holds_over_a_hundred_thousand_pairs) { expect_rates(120'000); }

Fingerprint of(const std::vector<float>& values) {
    return *fingerprint_of(tensor(values.data(), DType::f32, {values.size()}));
}

TEST(FingerprintJoin, of_pieces_is_that_of_the_whole) {
    Random random(9);
    std::vector<float> values(200'000);
    std::generate(values.begin(), values.end(), [&] { return static_cast<float>(normal(random)); });
    values[70'001] = std::numeric_limits<float>::quiet_NaN();
    values[150'000] = -std::numeric_limits<float>::infinity();
    values[33] = values[90'000] = 50;
    const Fingerprint whole = of(values);
    Fingerprint joined = *fingerprint_of(tensor(nullptr, DType::f32, {0}));
    for (std::size_t begin = 0, size = 32; begin < values.size(); size = size * 3 + 64) {
        FingerprintOptions options;
        options.first_index = begin;
        const std::size_t n = std::min(size, values.size() - begin);
        joined = join(joined, *fingerprint_of(tensor(values.data() + begin, DType::f32, {n}), options));
        begin += n;
    }
    EXPECT_EQ(joined.count, whole.count);
    EXPECT_EQ(joined.hash, whole.hash);
    EXPECT_EQ(joined.nans, 1U);
    EXPECT_EQ(joined.negative_infs, 1U);
    EXPECT_EQ(joined.first_nonfinite, 70'001U);
    EXPECT_EQ(joined.largest, 33U);
    EXPECT_EQ(joined.min, whole.min);
    EXPECT_EQ(joined.max, 50);
    EXPECT_NEAR(joined.sum, whole.sum, 1e-9);
    EXPECT_NEAR(joined.sum_of_squares, whole.sum_of_squares, 1e-7);
    for (std::size_t i = 0; i < whole.sketch.size(); ++i) {
        EXPECT_NEAR(joined.sketch[i], whole.sketch[i], 1e-9);
    }
}

TEST(FingerprintDistance, is_zero_where_all_bits_agree_and_infinite_where_nothing_can_be_said) {
    const std::vector<float> ones(100, 1.0F), zeros(100, 0.0F), negative_zeros(100, -0.0F);
    const double infinity = std::numeric_limits<double>::infinity();
    EXPECT_EQ(relative_distance(of(ones), of(ones)).high, 0);
    EXPECT_EQ(relative_distance(of(zeros), of(negative_zeros)).high, 0);
    EXPECT_EQ(relative_distance(of(zeros), of(ones)).low, infinity);
    const Distance gone = relative_distance(of(ones), of(zeros));
    EXPECT_TRUE(gone.low <= 1 && gone.high >= 1 && gone.high - gone.low < 1e-12);
    EXPECT_EQ(relative_distance(of(ones), of({1, 1})).low, infinity);
    std::vector<float> broken = ones, moved = ones;
    broken[7] = std::numeric_limits<float>::quiet_NaN();
    moved[8] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(relative_distance(of(ones), of(broken)).low, infinity);
    EXPECT_EQ(relative_distance(of(moved), of(broken)).low, infinity);
    EXPECT_EQ(relative_distance(of(broken), of(broken)).high, 0);
}

TEST(FingerprintDistance, T15_a_nan_is_never_near) {
    std::vector<float> ones(100, 1.0F), broken(100, 1.0F);
    broken[3] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isinf(relative_distance(of(broken), of(ones)).estimate));
    EXPECT_TRUE(std::isnan(cosine(of(broken), of(ones))));
    EXPECT_TRUE(std::isnan(cosine(of(broken), of(broken))));
}

TEST(FingerprintDistance, cosine_is_near_the_true_one) {
    Random random(5);
    double worst = 0;
    for (int round = 0; round < 400; ++round) {
        std::vector<float> a(2000), b(2000);
        const double mix = static_cast<double>(round) / 200 - 1;
        double dot = 0, aa = 0, bb = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
            a[i] = static_cast<float>(normal(random));
            b[i] = static_cast<float>(mix * static_cast<double>(a[i]) + (1 - std::fabs(mix)) * normal(random));
            dot += static_cast<double>(a[i]) * static_cast<double>(b[i]);
            aa += static_cast<double>(a[i]) * static_cast<double>(a[i]);
            bb += static_cast<double>(b[i]) * static_cast<double>(b[i]);
        }
        const double truth = dot / std::sqrt(aa * bb), found = cosine(of(a), of(b));
        // What is left of a vector beside the other is known to a quarter, so a cosine near 1 or -1 is known best.
        worst = std::max(worst, std::fabs(found - truth) / (1.05 - std::fabs(truth)));
    }
    EXPECT_LT(worst, 1.3);
    EXPECT_EQ(cosine(of({1, 2, 3}), of({1, 2, 3})), 1);
    EXPECT_NEAR(cosine(of({1, 2, 3}), of({-1, -2, -3})), -1, 1e-12);
    EXPECT_TRUE(std::isnan(cosine(of({0, 0}), of({1, 2}))));
}

} // namespace
} // namespace plumb
