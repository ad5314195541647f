// SPDX-License-Identifier: Apache-2.0
#include "decoder/model_maker/quantise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "decoder/model/reference_values.hpp"
#include "decoder/sampling/random.hpp"

namespace plumb::decoder {
namespace {

std::vector<double> stored(Type type, const std::vector<float>& values) {
    std::vector<std::byte> bytes(row_bytes(type, values.size()));
    quantise(type, values.data(), values.size(), bytes.data());
    return reference::values_of(layout_of(type).file_id, bytes, values.size());
}

/// Largest error of a value between -1 and 1: half a step, and what the rounding of the scales adds.
double largest_error(Type type) {
    switch (type) {
    case Type::f32:
        return 0;
    case Type::bf16:
        return 1.0 / 512;
    case Type::f16:
        return 1.0 / 4096;
    case Type::q8_0:
        return 0.51 / 127;
    case Type::q6_k:
        return 0.6 / 31;
    case Type::q4_k:
        return 0.6 * 2 / 15;
    case Type::q4_0:
        return 1.01 / 8; // the end without a partner
    }
    return 0;
}

class Quantised : public testing::TestWithParam<Type> {};

TEST_P(Quantised, values_come_back_within_a_step) {
    std::vector<float> values(1024);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(random_bits(9, i) % 20001) / 10000.0F - 1.0F;
    }
    const auto back = stored(GetParam(), values);
    for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(back[i], static_cast<double>(values[i]), largest_error(GetParam())) << i;
    }
}

TEST_P(Quantised, zeros_and_blocks_of_one_sign_come_back) {
    const auto zeros = stored(GetParam(), std::vector<float>(256, 0.0F));
    EXPECT_EQ(*std::max_element(zeros.begin(), zeros.end()), 0.0);
    for (const float only : {0.75F, -0.75F}) {
        for (const double value : stored(GetParam(), std::vector<float>(256, only))) {
            ASSERT_NEAR(value, static_cast<double>(only), largest_error(GetParam()));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Quantised, testing::ValuesIn(all_types),
                         [](const auto& type) { return std::string(layout_of(type.param).word); });

TEST(QuantisedHalf, every_half_comes_back_as_itself_and_ties_go_to_even) {
    for (unsigned bits = 0; bits < 0x7c00; ++bits) {
        const std::byte half[2] = {static_cast<std::byte>(bits), static_cast<std::byte>(bits >> 8)};
        const double value = reference::values_of(1, half, 1)[0];
        ASSERT_EQ(stored(Type::f16, {static_cast<float>(value)})[0], value);
        ASSERT_EQ(stored(Type::f16, {static_cast<float>(-value)})[0], -value);
    }
    EXPECT_EQ(stored(Type::f16, {0x1.002p0F})[0], 1.0);
    EXPECT_EQ(stored(Type::f16, {0x1.006p0F})[0], 0x1.008p0);
    EXPECT_EQ(stored(Type::f16, {65520.0F})[0], INFINITY);
}

} // namespace
} // namespace plumb::decoder
