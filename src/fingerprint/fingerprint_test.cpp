// SPDX-License-Identifier: Apache-2.0
#include "plumb/fingerprint.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cstdlib>
#include <random>

#include "fingerprint/fingerprint_with.hpp"
#include "fingerprint/kernels.hpp"
#include "fingerprint/naive_reference_testing.hpp"

namespace plumb::fingerprint {
namespace {

constexpr DType types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32};

/// n elements of any bits whatever: NaN, infinities, denormals, both zeros; `tame`: finite floats near 1.
std::vector<unsigned char> random_bytes(DType type, std::size_t n, std::uint64_t seed, bool tame) {
    std::mt19937_64 random(seed);
    std::vector<unsigned char> bytes(n * size_of(type) + 1);
    for (std::size_t i = 0; i < n; ++i) {
        std::uint64_t bits = random();
        if (tame && type != DType::i8 && type != DType::i32) {
            const unsigned exponent = type == DType::f64 ? 52 : type == DType::f16 ? 10 : type == DType::f32 ? 23 : 7;
            const std::uint64_t bias = type == DType::f64 ? 1020 : type == DType::f16 ? 12 : 124;
            const std::uint64_t fraction = bits & ((std::uint64_t{1} << exponent) - 1);
            const std::uint64_t sign = (bits >> 63) << (8 * size_of(type) - 1);
            bits = sign | (bias + (bits >> 60 & 3U)) << exponent | fraction;
        } else if (!tame && (bits >> 56) % 8 == 0) {
            constexpr std::uint64_t tops[] = {0, 0x8000, 0x7f80, 0xff80, 0x7ff0, 0xfff0, 0x7c00, 0xfc00, 0x7fff, 1};
            const unsigned shift = static_cast<unsigned>(8 * size_of(type));
            const std::uint64_t top = tops[(bits >> 32) % 10];
            bits = shift >= 16 ? top << (shift - 16) : top >> 8;
        }
        std::memcpy(bytes.data() + i * size_of(type), &bits, size_of(type));
    }
    return bytes;
}

void expect_is(const Fingerprint& made, const Tensor& tensor, unsigned buckets, std::uint64_t first) {
    const naive::Reference wanted = naive::reference_of(tensor, buckets, first);
    const Fingerprint& exact = wanted.exact;
    EXPECT_EQ(made.count, exact.count);
    EXPECT_EQ(made.nans, exact.nans);
    EXPECT_EQ(made.positive_infs, exact.positive_infs);
    EXPECT_EQ(made.negative_infs, exact.negative_infs);
    EXPECT_EQ(made.first_nonfinite, exact.first_nonfinite);
    EXPECT_EQ(made.hash, exact.hash);
    EXPECT_EQ(made.largest, exact.largest);
    if (exact.largest == no_index) {
        EXPECT_TRUE(std::isnan(made.min) && std::isnan(made.max));
    } else {
        EXPECT_EQ(std::bit_cast<std::uint64_t>(made.min), std::bit_cast<std::uint64_t>(exact.min + 0.0));
        EXPECT_EQ(std::bit_cast<std::uint64_t>(made.max), std::bit_cast<std::uint64_t>(exact.max + 0.0));
    }
    ASSERT_EQ(made.sketch.size(), buckets);
    if (wanted.squares > 1e300L || wanted.magnitudes > 1e300L) {
        return; // the sums of doubles overflow where those of the reference do not
    }
    const long double bound = 0x1p-53L * static_cast<long double>(4096 + 16 + made.count / 65536 + 2);
    EXPECT_NEAR(made.sum, static_cast<double>(wanted.sum), static_cast<double>(bound * wanted.magnitudes));
    EXPECT_NEAR(made.sum_of_squares, static_cast<double>(wanted.squares), static_cast<double>(bound * wanted.squares));
    for (unsigned i = 0; i < buckets; ++i) {
        EXPECT_NEAR(made.sketch[i], static_cast<double>(wanted.sketch[i]),
                    static_cast<double>(bound * wanted.magnitudes));
    }
}

void expect_same_bits(const Fingerprint& a, const Fingerprint& b, const std::string& what) {
    const auto bits = [](double x) {
        return std::bit_cast<std::uint64_t>(x);
    };
    EXPECT_EQ(a.count, b.count) << what;
    EXPECT_EQ(a.nans, b.nans) << what;
    EXPECT_EQ(a.positive_infs, b.positive_infs) << what;
    EXPECT_EQ(a.negative_infs, b.negative_infs) << what;
    EXPECT_EQ(a.first_nonfinite, b.first_nonfinite) << what;
    EXPECT_EQ(bits(a.min), bits(b.min)) << what;
    EXPECT_EQ(bits(a.max), bits(b.max)) << what;
    EXPECT_EQ(a.largest, b.largest) << what;
    EXPECT_EQ(a.hash, b.hash) << what;
    // The sign of a NaN that overflow makes is nobody's promise.
    const auto same = [&](double x, double y) {
        return bits(x) == bits(y) || (std::isnan(x) && std::isnan(y));
    };
    EXPECT_TRUE(same(a.sum, b.sum)) << what << a.sum << ' ' << b.sum;
    EXPECT_TRUE(same(a.sum_of_squares, b.sum_of_squares)) << what;
    ASSERT_EQ(a.sketch.size(), b.sketch.size()) << what;
    for (std::size_t i = 0; i < a.sketch.size(); ++i) {
        EXPECT_TRUE(same(a.sketch[i], b.sketch[i])) << what << " bucket " << i;
    }
}

Fingerprint of(const Tensor& tensor, const FingerprintOptions& options = {}) {
    Result<Fingerprint> made = fingerprint_of(tensor, options);
    EXPECT_TRUE(made.ok());
    return made.ok() ? *made : Fingerprint{};
}

TEST(Fingerprint, is_what_the_naive_reference_says_for_every_type_length_and_offset) {
    for (const DType type : types) {
        for (const bool tame : {true, false}) {
            for (const std::size_t n : std::initializer_list<std::size_t>{1, 2, 31, 32, 33, 63, 64, 65, 1000, 2047,
                                                                          2048, 2049, 65535, 65537, 140000}) {
                const auto bytes = random_bytes(type, n, n, tame);
                for (const std::uint64_t first : std::initializer_list<std::uint64_t>{0, 7, 32, 1000003}) {
                    SCOPED_TRACE(std::string(dtype_word(type)) + (tame ? " tame " : " wild ") + std::to_string(n) +
                                 " from " + std::to_string(first));
                    FingerprintOptions options;
                    options.first_index = first;
                    options.buckets = n % 2 == 0 ? 32 : 128;
                    const Tensor whole = tensor(bytes.data(), type, {n});
                    expect_is(of(whole, options), whole, options.buckets, first);
                }
            }
        }
    }
}

TEST(Fingerprint, reads_any_strides) {
    for (const DType type : types) {
        for (const bool tame : {true, false}) {
            const auto bytes = random_bytes(type, 40000, 5, tame);
            const auto at = [&](std::size_t i) {
                return bytes.data() + i * size_of(type);
            };
            const Tensor strided[] = {
                tensor(at(0), type, {70, 50}, {1, 70}),         // transposed
                tensor(at(0), type, {9, 11, 13}, {300, 20, 1}), // lines with gaps
                tensor(at(3999), type, {4000}, {-1}),           // backwards
                tensor(at(3), type, {100, 40}, {0, 1}),         // one line again and again
                tensor(at(3), type, {33, 70}, {1, 0}),          // each element again and again
                tensor(at(2999), type, {3, 10, 100}, {-1000, 100, -1}),
                tensor(at(0), type, {5, 1, 7}, {7, 1234567, 1}), // a dimension of one has no stride
                tensor(at(1), type, {2, 2, 2, 2, 2, 2, 2, 2}, {9000, 4000, 2000, 1000, 400, 120, 50, 9}),
                tensor(at(0), type, {4, 100, 90}, {90, 360, 1}), // heads and positions exchanged
                tensor(at(7), type, {1}, {99}),
            };
            for (const Tensor& one : strided) {
                SCOPED_TRACE(std::string(dtype_word(type)) + (tame ? " tame " : " wild ") +
                             std::to_string(one.shape[0]));
                FingerprintOptions options;
                options.first_index = 5;
                expect_is(of(one, options), one, 32, 5);
                const double largest = largest_magnitude(one);
                const Fingerprint made = of(one);
                EXPECT_EQ(first_nonfinite(one), made.first_nonfinite);
                if (made.nans != 0) {
                    EXPECT_TRUE(std::isnan(largest));
                } else if (!made.finite()) {
                    EXPECT_EQ(largest, std::numeric_limits<double>::infinity());
                } else {
                    EXPECT_EQ(largest, std::max(-made.min, made.max));
                }
            }
        }
    }
}

TEST(Fingerprint, has_the_same_bits_on_every_instruction_set) {
    ASSERT_STREQ(available_kernels().back()->name, "plain");
    for (const DType type : types) {
        for (const bool tame : {true, false}) {
            for (const std::size_t n : std::initializer_list<std::size_t>{5, 777, 70001}) {
                for (const unsigned buckets : {32U, 64U, 128U, 256U}) {
                    const auto bytes = random_bytes(type, n, 3 * n, tame);
                    const Tensor whole = tensor(bytes.data(), type, {n});
                    FingerprintOptions options;
                    options.buckets = buckets;
                    const Fingerprint plain = *fingerprint_with(plain_kernels(), whole, options);
                    for (const Kernels* kernels : available_kernels()) {
                        const std::string what = std::string(kernels->name) + ' ' + dtype_word(type) + ' ' +
                                                 std::to_string(n) + ' ' + std::to_string(buckets);
                        expect_same_bits(*fingerprint_with(*kernels, whole, options), plain, what);
                        const double largest = largest_with(*kernels, whole),
                                     wanted = largest_with(plain_kernels(), whole);
                        EXPECT_TRUE(largest == wanted || (std::isnan(largest) && std::isnan(wanted))) << what;
                    }
                }
            }
        }
    }
}

TEST(Fingerprint, has_the_same_bits_for_every_number_of_threads) {
    const std::size_t n = 1'700'001;
    for (const DType type : types) {
        auto bytes = random_bytes(type, n, 11, true);
        const Tensor whole = tensor(bytes.data(), type, {n});
        const Tensor strided = tensor(bytes.data(), type, {1000, 850}, {1, 1000});
        for (const Tensor& one : {whole, strided}) {
            const Fingerprint alone = of(one);
            for (const unsigned threads : {0U, 2U, 3U, 7U, 100U}) {
                FingerprintOptions options;
                options.threads = threads;
                expect_same_bits(of(one, options), alone, dtype_word(type));
            }
        }
    }
}

TEST(Fingerprint, sees_denormals_whatever_the_thread_has_switched_on) {
    std::vector<float> values(100, std::numeric_limits<float>::denorm_min());
    const Tensor whole = tensor(values.data(), DType::f32, {100});
    const Fingerprint usual = of(whole);
    EXPECT_EQ(usual.min, 0x1p-149);
    EXPECT_EQ(usual.sum, 100 * 0x1p-149);
    std::fenv_t before;
    std::fegetenv(&before);
#if defined(__SSE2__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040U); // denormals are zeros, in and out
#endif
    std::fesetround(FE_UPWARD);
    const Fingerprint fast = of(whole);
    const double largest = largest_magnitude(whole);
    const int rounding = std::fegetround();
    std::fesetenv(&before);
    EXPECT_EQ(rounding, FE_UPWARD); // left as it was
    EXPECT_EQ(largest, 0x1p-149);
    expect_same_bits(fast, usual, "flushing");
}

TEST(Fingerprint, leaves_nothing_of_the_one_whose_memory_it_takes) {
    const Kernels& kernels = best_kernels();
    const float bad[] = {std::numeric_limits<float>::quiet_NaN(), 2, 3};
    const float good[] = {4, -5};
    FingerprintOptions wide;
    wide.buckets = 256;
    Fingerprint reused;
    ASSERT_TRUE(fingerprint_into(reused, kernels, tensor(bad, DType::f32, {3}), wide).ok());
    const double* memory = reused.sketch.data();
    ASSERT_TRUE(fingerprint_into(reused, kernels, tensor(good, DType::f32, {2}), {}).ok());
    EXPECT_EQ(reused.sketch.data(), memory);
    const Fingerprint fresh = *fingerprint_with(kernels, tensor(good, DType::f32, {2}), {});
    EXPECT_EQ(reused.sketch, fresh.sketch);
    EXPECT_EQ(reused.count, fresh.count);
    EXPECT_EQ(reused.nans, 0u);
    EXPECT_EQ(reused.first_nonfinite, no_index);
    EXPECT_EQ(reused.hash, fresh.hash);
    EXPECT_EQ(reused.sum, fresh.sum);
    EXPECT_EQ(reused.sum_of_squares, fresh.sum_of_squares);
    EXPECT_EQ(reused.min, -5);
    EXPECT_EQ(reused.max, 4);
}

TEST(Fingerprint, of_nothing_holds_nothing) {
    const Fingerprint empty = of(tensor(nullptr, DType::f32, {3, 0, 5}));
    EXPECT_EQ(empty.count, 0U);
    EXPECT_EQ(empty.hash, 0U);
    EXPECT_EQ(empty.largest, no_index);
    EXPECT_TRUE(empty.finite());
    EXPECT_TRUE(std::isnan(empty.min) && std::isnan(empty.max));
    EXPECT_EQ(empty.sketch, std::vector<double>(32, 0.0));
    EXPECT_EQ(largest_magnitude(tensor(nullptr, DType::f64, {0})), 0);
    EXPECT_EQ(first_nonfinite(Tensor{}), no_index);
}

TEST(Fingerprint, refuses_what_it_cannot_read) {
    const float one = 1;
    Tensor bad = tensor(&one, DType::f32, {1});
    bad.rank = 9;
    EXPECT_EQ(fingerprint_of(bad).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(fingerprint_of(tensor(nullptr, DType::f32, {4})).error().code, ErrorCode::invalid_argument);
    EXPECT_TRUE(std::isnan(largest_magnitude(tensor(nullptr, DType::f32, {4}))));
    EXPECT_EQ(first_nonfinite(tensor(nullptr, DType::f32, {4})), 0U);
    bad = tensor(&one, DType::f32, {1});
    bad.dtype = static_cast<DType>(77);
    EXPECT_EQ(fingerprint_of(bad).error().code, ErrorCode::invalid_argument);
    bad = tensor(&one, DType::f32, {1, 1});
    bad.shape[0] = std::size_t{1} << 33;
    bad.shape[1] = bad.shape[0] + 1;
    EXPECT_EQ(fingerprint_of(bad).error().code, ErrorCode::invalid_argument);
    FingerprintOptions options;
    for (const unsigned buckets : {0U, 1U, 33U, 96U, 512U}) {
        options.buckets = buckets;
        EXPECT_EQ(fingerprint_of(tensor(&one, DType::f32, {1}), options).error().code, ErrorCode::invalid_argument);
    }
}

TEST(Fingerprint, names_the_first_nonfinite_and_the_first_of_the_largest) {
    std::vector<float> values(300'000, 0.5F);
    values[123'456] = -2;
    values[222'222] = 2;
    values[70'000] = std::numeric_limits<float>::quiet_NaN();
    values[250'000] = -std::numeric_limits<float>::infinity();
    const Tensor whole = tensor(values.data(), DType::f32, {values.size()});
    const Fingerprint made = of(whole);
    EXPECT_EQ(made.first_nonfinite, 70'000U);
    EXPECT_EQ(made.largest, 123'456U);
    EXPECT_EQ(made.nans, 1U);
    EXPECT_EQ(made.negative_infs, 1U);
    EXPECT_EQ(made.min, -2);
    EXPECT_EQ(first_nonfinite(whole), 70'000U);
    EXPECT_TRUE(std::isnan(largest_magnitude(whole)));
    EXPECT_EQ(largest_magnitude(tensor(values.data() + 80'000, DType::f32, {1000})), 0.5);
}

} // namespace
} // namespace plumb::fingerprint
