// SPDX-License-Identifier: Apache-2.0
// Packed rows against the reference: blocks of random bits, so that every scale and every place of a value occurs.
#include "decoder/kernels/cpu/packed.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "decoder/model/reference_values.hpp"
#include "decoder/sampling/random.hpp"

namespace plumb::decoder::cpu {
namespace {

/// Random bits, but no infinite scale: where a half may lie the upper bits of its exponent are cleared.
std::vector<std::byte> random_rows(Type type, std::size_t values, std::uint64_t seed) {
    const TypeLayout layout = layout_of(type);
    std::vector<std::byte> out(row_bytes(type, values));
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = static_cast<std::byte>(random_bits(seed, i));
    const auto tame = [&](std::size_t at) {
        out[at] &= std::byte{0xbf};
    };
    for (std::size_t at = 0; at < out.size(); at += layout.bytes) {
        if (type == Type::q6_k)
            tame(at + 209);
        else if (type == Type::q4_k)
            tame(at + 1), tame(at + 3);
        else
            tame(at + layout.bytes - (layout.block == 1 ? 1 : layout.bytes - 1));
    }
    return out;
}

class Packed : public testing::TestWithParam<Type> {
  protected:
    static std::vector<std::size_t> lengths() {
        if (layout_of(GetParam()).block == 1)
            return {1, 3, 63, 64, 65, 333};
        return {layout_of(GetParam()).block, 3 * layout_of(GetParam()).block};
    }
};

TEST_P(Packed, values_are_those_of_the_reference_in_every_bit) {
    for (const std::size_t n : lengths()) {
        const auto row = random_rows(GetParam(), n, n);
        const auto expected = reference::values_of(layout_of(GetParam()).file_id, row, n);
        std::vector<float> actual(n + 1, 77.0F);
        unpack(GetParam(), row.data(), n, actual.data());
        for (std::size_t i = 0; i < n; ++i)
            ASSERT_EQ(actual[i], static_cast<float>(expected[i])) << i << " of " << n;
        EXPECT_EQ(actual[n], 77.0F);
    }
}

TEST_P(Packed, rows_may_begin_at_any_byte) {
    const std::size_t n = lengths().back();
    auto row = random_rows(GetParam(), n, 5);
    std::vector<float> aligned(n), moved(n);
    unpack(GetParam(), row.data(), n, aligned.data());
    row.insert(row.begin(), std::byte{1});
    unpack(GetParam(), row.data() + 1, n, moved.data());
    EXPECT_EQ(aligned, moved);
}

TEST_P(Packed, products_are_those_of_the_values) {
    constexpr std::size_t outputs = 5;
    for (const std::size_t n : lengths())
        for (std::size_t rows = 1; rows <= 9; ++rows)
            for (const bool biased : {false, true}) {
                const auto matrix = random_rows(GetParam(), outputs * n, 10 * n + rows);
                const auto weights = reference::values_of(layout_of(GetParam()).file_id, matrix, outputs * n);
                std::vector<float> in(rows * n), bias(outputs, 0.5F), out(rows * (outputs + 1), 77.0F);
                for (std::size_t i = 0; i < in.size(); ++i)
                    in[i] = static_cast<float>(random_bits(3, i) % 2001) / 1000.0F - 1.0F;
                multiply({GetParam(), matrix.data(), outputs, n, biased ? bias.data() : nullptr}, in.data(), rows,
                         out.data(), outputs + 1);
                for (std::size_t r = 0; r < rows; ++r) {
                    for (std::size_t o = 0; o < outputs; ++o) {
                        double sum = biased ? 0.5 : 0.0, size = 1;
                        for (std::size_t i = 0; i < n; ++i) {
                            const double term = weights[o * n + i] * static_cast<double>(in[r * n + i]);
                            sum += term, size += std::abs(term);
                        }
                        EXPECT_NEAR(static_cast<double>(out[r * (outputs + 1) + o]), sum, 1e-6 * size)
                            << rows << " rows of " << n;
                    }
                    EXPECT_EQ(out[r * (outputs + 1) + outputs], 77.0F) << "between the rows";
                }
            }
}

INSTANTIATE_TEST_SUITE_P(Types, Packed, testing::ValuesIn(all_types),
                         [](const auto& type) { return std::string(layout_of(type.param).word); });

} // namespace
} // namespace plumb::decoder::cpu
