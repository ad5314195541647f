// SPDX-License-Identifier: Apache-2.0
// Products of every kind against sums in double: one token and many, whole and cut into uneven pieces, with and without
// bias, alone and in groups.
#include "decoder/kernels/cpu/matrix.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "decoder/kernels/cpu/openmp.hpp"
#include "decoder/kernels/cpu/vector_ops.hpp"
#include "decoder/sampling/random.hpp"

namespace plumb::decoder::cpu {
namespace {

std::vector<float> values_below_one(std::size_t n, std::uint64_t seed) {
    std::vector<float> out(n);
    for (std::size_t i = 0; i < n; ++i) {
        out[i] = static_cast<float>(static_cast<double>(random_bits(seed, i) >> 11) * 0x1.0p-52 - 1.0);
    }
    return out;
}

/// Values of a type, and the doubles they stand for.
struct Stored {
    std::vector<float> wide;
    std::vector<Bf16> narrow;
    Type type;

    Stored(std::vector<float> values, Type of) : wide(std::move(values)), type(of) {
        if (type == Type::f32) {
            return;
        }
        narrow.resize(wide.size());
        to_bf16(wide.data(), wide.size(), narrow.data());
        from_bf16(narrow.data(), narrow.size(), wide.data());
    }
    void* data() { return type == Type::bf16 ? static_cast<void*>(narrow.data()) : static_cast<void*>(wide.data()); }
};

struct Case {
    Type type;
    bool widen;
    int threads;
};

void check(const Case& c, std::size_t rows, std::size_t inputs, const std::vector<std::size_t>& outputs, bool bias) {
    Team team(c.threads);
    const int before = matrix_library_alone();
    Result<std::unique_ptr<Matrices>> matrices = Matrices::make(team, c.widen);
    ASSERT_TRUE(matrices.ok()) << matrices.error().message;
    const bool narrow_input = c.type == Type::bf16 && (*matrices)->native_bf16();
    Stored in(values_below_one(rows * inputs, 1), narrow_input ? Type::bf16 : Type::f32);
    std::vector<Stored> weights;
    std::vector<std::vector<float>> biases, results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        weights.emplace_back(values_below_one(outputs[i] * inputs, 2 + i), c.type);
        biases.push_back(values_below_one(outputs[i], 20 + i));
        results.emplace_back(rows * outputs[i] + 1, 77.0F); // one more, which must stay
    }
    std::vector<Linear> linears(outputs.size());
    std::vector<Product> group;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        linears[i].weight = {weights[i].data(), c.type, outputs[i], inputs};
        linears[i].bias = bias ? biases[i].data() : nullptr;
        ASSERT_TRUE((*matrices)->prepare(linears[i], rows).ok());
        group.push_back({&linears[i], {results[i].data(), Type::f32, rows, outputs[i]}});
    }
    (*matrices)->run({in.data(), in.type, rows, inputs}, group);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        double worst = 0;
        for (std::size_t r = 0; r < rows; ++r) {
            for (std::size_t o = 0; o < outputs[i]; ++o) {
                double sum = bias ? static_cast<double>(biases[i][o]) : 0;
                for (std::size_t k = 0; k < inputs; ++k) {
                    sum += static_cast<double>(weights[i].wide[o * inputs + k]) *
                           static_cast<double>(in.wide[r * inputs + k]);
                }
                worst = std::max(worst, std::abs(sum - static_cast<double>(results[i][r * outputs[i] + o])));
            }
        }
        EXPECT_LT(worst, 1e-4) << rows << " x " << inputs << " x " << outputs[i];
        EXPECT_EQ(results[i].back(), 77.0F);
    }
    set_matrix_library_threads(before);
}

class Products : public testing::TestWithParam<Case> {};

TEST_P(Products, of_one_token_in_uneven_pieces) {
    check(GetParam(), 1, 200, {1001}, true);
    check(GetParam(), 1, 333, {3000}, false);
}

TEST_P(Products, of_a_block_of_tokens_in_uneven_pieces) {
    check(GetParam(), 7, 200, {601}, true);
    check(GetParam(), 64, 96, {300}, false);
}

TEST_P(Products, of_small_matrices) {
    check(GetParam(), 1, 1, {1}, true);
    check(GetParam(), 3, 5, {2}, true);
}

TEST_P(Products, in_a_group) {
    check(GetParam(), 1, 256, {700, 130, 130}, true);
    check(GetParam(), 9, 256, {700, 130, 130}, false);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Products,
                         testing::Values(Case{Type::f32, false, 1}, Case{Type::f32, false, 3},
                                         Case{Type::bf16, false, 1}, Case{Type::bf16, false, 3},
                                         Case{Type::bf16, true, 1}, Case{Type::bf16, true, 3}));

} // namespace
} // namespace plumb::decoder::cpu
