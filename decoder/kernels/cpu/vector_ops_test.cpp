// SPDX-License-Identifier: Apache-2.0
// Each operation against a plain loop in double, at lengths that vectors divide and that they do not.
#include "decoder/kernels/cpu/vector_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "decoder/sampling/random.hpp"

namespace plumb::decoder::cpu {
namespace {

constexpr std::size_t lengths[] = {1, 2, 3, 15, 16, 17, 63, 64, 65, 200};

std::vector<float> values_below_two(std::size_t n, std::uint64_t seed) {
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = static_cast<float>(static_cast<double>(random_bits(seed, i) >> 11) * 0x1.0p-51 - 2.0);
    }
    return out;
}

double real(float value) { return static_cast<double>(value); }

float widened(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16); }

TEST(VectorOps, bf16_rounds_to_nearest_even_and_keeps_nan_and_infinity) {
    constexpr float inf = std::numeric_limits<float>::infinity();
    const std::vector<float> in{1.0F,
                                std::bit_cast<float>(0x3f808000U),
                                std::bit_cast<float>(0x3f818000U),
                                std::bit_cast<float>(0x3f808001U),
                                -inf,
                                std::bit_cast<float>(0x7fffffffU),
                                -0.0F};
    // One value at a time, then all, then enough copies to fill a vector.
    for (const std::size_t copies : {1U, 9U}) {
        std::vector<float> all;
        for (std::size_t i = 0; i < copies; ++i) {
            all.insert(all.end(), in.begin(), in.end());
        }
        std::vector<Bf16> out(all.size());
        to_bf16(all.data(), all.size(), out.data());
        for (std::size_t i = 0; i < all.size(); i += in.size()) {
            EXPECT_EQ(out[i + 0], 0x3f80);
            EXPECT_EQ(out[i + 1], 0x3f80) << "half goes to the even neighbour below";
            EXPECT_EQ(out[i + 2], 0x3f82) << "and to the even neighbour above";
            EXPECT_EQ(out[i + 3], 0x3f81);
            EXPECT_EQ(out[i + 4], 0xff80);
            EXPECT_TRUE(std::isnan(widened(out[i + 5])));
            EXPECT_EQ(out[i + 6], 0x8000);
        }
    }
}

TEST(VectorOps, bf16_widens_exactly) {
    for (const std::size_t n : lengths) {
        std::vector<Bf16> in(n);
        for (std::size_t i = 0; i < n; ++i) {
            in[i] = static_cast<Bf16>(random_bits(1, i) & 0xbfff);
        }
        std::vector<float> out(n);
        from_bf16(in.data(), n, out.data());
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_EQ(out[i], widened(in[i]));
        }
    }
}

TEST(VectorOps, rms_norm_and_its_rounded_form) {
    for (const std::size_t n : lengths) {
        const auto in = values_below_two(n, 1);
        const auto weight = values_below_two(n, 2);
        std::vector<float> out(n);
        std::vector<Bf16> rounded(n);
        rms_norm(in.data(), weight.data(), 1e-5F, n, out.data());
        rms_norm(in.data(), weight.data(), 1e-5F, n, rounded.data());
        double squares = 0;
        for (const float v : in) {
            squares += real(v) * real(v);
        }
        const double root = std::sqrt(squares / static_cast<double>(n) + 1e-5);
        for (std::size_t i = 0; i < n; ++i) {
            const double expected = real(in[i]) / root * real(weight[i]);
            EXPECT_NEAR(real(out[i]), expected, 1e-5);
            EXPECT_NEAR(real(widened(rounded[i])), expected, 1e-5 + std::abs(expected) / 256);
        }
    }
}

TEST(VectorOps, silu_multiply_and_its_rounded_form) {
    for (const std::size_t n : lengths) {
        auto gate = values_below_two(n, 3);
        gate[0] = n % 2 == 0 ? -90.0F : -2000.0F; // exp overflows: the result is 0 and not a NaN
        const auto up = values_below_two(n, 4);
        std::vector<float> out(n);
        std::vector<Bf16> rounded(n);
        silu_multiply(gate.data(), up.data(), n, out.data());
        silu_multiply(gate.data(), up.data(), n, rounded.data());
        for (std::size_t i = 0; i < n; ++i) {
            const double expected = real(gate[i]) / (1 + std::exp(-real(gate[i]))) * real(up[i]);
            EXPECT_NEAR(real(out[i]), expected, 1e-5);
            EXPECT_NEAR(real(widened(rounded[i])), expected, 1e-5 + std::abs(expected) / 256);
        }
    }
}

TEST(VectorOps, gelu_multiply_and_its_rounded_form) {
    for (const std::size_t n : lengths) {
        auto gate = values_below_two(n, 3);
        for (const float edge : {-90.0F, -1e6F, 90.0F}) {
            gate[n - 1] = edge; // exp overflows: the result is 0 or the value itself, and not a NaN
            const auto up = values_below_two(n, 4);
            std::vector<float> out(n);
            std::vector<Bf16> rounded(n);
            gelu_multiply(gate.data(), up.data(), n, out.data());
            gelu_multiply(gate.data(), up.data(), n, rounded.data());
            for (std::size_t i = 0; i < n; ++i) {
                const double g = real(gate[i]);
                const double inner = 0.7978845608028654 * (g + 0.044715 * g * g * g);
                const double expected = 0.5 * g * (1 + std::tanh(inner)) * real(up[i]);
                EXPECT_NEAR(real(out[i]), expected, 1e-5 * std::max(1.0, std::abs(expected))) << g;
                EXPECT_NEAR(real(widened(rounded[i])), expected, 1e-5 + std::abs(expected) / 256);
            }
        }
    }
}

TEST(VectorOps, scaling_and_adding_a_scaled_row) {
    for (const std::size_t n : lengths) {
        const auto x = values_below_two(n, 5);
        auto out = values_below_two(n, 6);
        const auto before = out;
        add_scaled(x.data(), 0.75F, n, out.data());
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_NEAR(real(out[i]), real(before[i]) + 0.75 * real(x[i]), 1e-6);
        }
        out = before;
        scale(out.data(), -1.5F, n);
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_EQ(out[i], -1.5F * before[i]);
        }
    }
}

TEST(VectorOps, heads_turn_by_neighbours_and_by_halves) {
    for (const std::size_t pairs : lengths) {
        const auto cosines = values_below_two(pairs, 5);
        const auto sines = values_below_two(pairs, 6);
        const auto head = values_below_two(2 * pairs, 7);
        auto neighbours = head;
        auto halves = head;
        rotate_neighbours(neighbours.data(), cosines.data(), sines.data(), pairs);
        rotate_halves(halves.data(), cosines.data(), sines.data(), pairs);
        for (std::size_t i = 0; i < pairs; ++i) {
            const double c = real(cosines[i]), s = real(sines[i]);
            EXPECT_NEAR(real(neighbours[2 * i]), real(head[2 * i]) * c - real(head[2 * i + 1]) * s, 1e-5);
            EXPECT_NEAR(real(neighbours[2 * i + 1]), real(head[2 * i]) * s + real(head[2 * i + 1]) * c, 1e-5);
            EXPECT_NEAR(real(halves[i]), real(head[i]) * c - real(head[pairs + i]) * s, 1e-5);
            EXPECT_NEAR(real(halves[pairs + i]), real(head[i]) * s + real(head[pairs + i]) * c, 1e-5);
        }
    }
}

TEST(VectorOps, attention_of_one_head) {
    for (const std::size_t size : lengths) {
        for (const std::size_t positions : {1U, 2U, 17U, 40U}) {
            auto query = values_below_two(size, 8);
            const auto keys = values_below_two(size * positions, 9);
            const auto values = values_below_two(size * positions, 10);
            std::vector<double> weight(positions);
            double sum = 0;
            for (std::size_t p = 0; p < positions; ++p) {
                for (std::size_t i = 0; i < size; ++i) {
                    weight[p] += real(query[i]) * real(keys[p * size + i]);
                }
                weight[p] = std::exp(weight[p] / std::sqrt(static_cast<double>(size)));
                sum += weight[p];
            }
            std::vector<float> scores(positions);
            attend(query.data(), keys.data(), values.data(), positions, size, scores.data(), query.data());
            for (std::size_t i = 0; i < size; ++i) {
                double expected = 0;
                for (std::size_t p = 0; p < positions; ++p) {
                    expected += weight[p] / sum * real(values[p * size + i]);
                }
                EXPECT_NEAR(real(query[i]), expected, 2e-5) << size << ' ' << positions;
            }
        }
    }
}

TEST(VectorOps, add_and_largest) {
    for (const std::size_t n : lengths) {
        const auto x = values_below_two(n, 11);
        auto y = values_below_two(n, 12);
        for (std::size_t at = 0; at < n; ++at) {
            auto values = values_below_two(n, 13);
            values[at] = 5.0F;
            values.back() = 5.0F;
            EXPECT_EQ(largest(values.data(), n), at) << "the first of equals";
        }
        const auto before = y;
        add(y.data(), x.data(), n);
        for (std::size_t i = 0; i < n; ++i) {
            EXPECT_EQ(y[i], before[i] + x[i]);
        }
    }
}

TEST(VectorOps, largest_passes_over_what_is_no_number) {
    for (const std::size_t n : lengths) {
        for (std::size_t at = 0; at < n; ++at) {
            for (std::size_t nan_at = 0; nan_at < n; ++nan_at) {
                auto values = values_below_two(n, 13);
                values[at] = 5.0F;
                values[nan_at] = nan_at == at ? 5.0F : std::numeric_limits<float>::quiet_NaN();
                ASSERT_EQ(largest(values.data(), n), at) << n << " values, no number at " << nan_at;
            }
        }
    }
}

TEST(VectorOps, largest_of_nothing_comparable_is_the_first) {
    const std::vector<float> values(40, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(largest(values.data(), values.size()), 0U);
}

} // namespace
} // namespace plumb::decoder::cpu
