// SPDX-License-Identifier: Apache-2.0
// Packed rows against the reference: blocks of random bits, so that every scale and every place of a value occurs; in every
// instruction set that this processor has.
#include "decoder/kernels/cpu/packed.hpp"

#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <tuple>

#include "decoder/model/reference_values.hpp"
#include "decoder/sampling/random.hpp"

namespace plumb::decoder::cpu {
namespace {

/// Random bits, but no infinite scale: where a half may lie the upper bits of its exponent are cleared.
std::vector<std::byte> random_rows(Type type, std::size_t values, std::uint64_t seed) {
    const TypeLayout layout = layout_of(type);
    std::vector<std::byte> out(row_bytes(type, values));
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] = static_cast<std::byte>(random_bits(seed, i));
    }
    const auto tame = [&](std::size_t at) {
        out[at] &= std::byte{0xbf};
    };
    for (std::size_t at = 0; at < out.size(); at += layout.bytes) {
        if (type == Type::q6_k) {
            tame(at + 209);
        } else if (type == Type::q4_k) {
            tame(at + 1), tame(at + 3);
        } else {
            tame(at + layout.bytes - (layout.block == 1 ? 1 : layout.bytes - 1));
        }
    }
    return out;
}

std::vector<std::int64_t> instruction_sets() {
    std::vector<std::int64_t> out;
    for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1) {
        out.push_back(left & -left);
    }
    return out;
}

void choose(std::int64_t only) {
    hwy::SetSupportedTargetsForTest(only);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

enum class Fence { before, behind };

/// Values with a page that nobody may touch right before them or right behind them.
template <class T>
class Fenced {
  public:
    Fenced(const std::vector<T>& values, Fence where) : size_(values.size()) {
        const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        const std::size_t bytes = size_ * sizeof(T), room = (bytes + page - 1) / page * page;
        all_bytes_ = room + 2 * page;
        all_ = mmap(nullptr, all_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (all_ == MAP_FAILED || mprotect(static_cast<std::byte*>(all_) + page, room, PROT_READ | PROT_WRITE) != 0) {
            throw std::bad_alloc();
        }
        first_ = reinterpret_cast<T*>(static_cast<std::byte*>(all_) + page +
                                      (where == Fence::behind ? room - bytes : std::size_t{0}));
        std::copy(values.begin(), values.end(), first_);
    }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    ~Fenced() { munmap(all_, all_bytes_); }
    [[nodiscard]] T* data() { return first_; }
    [[nodiscard]] std::vector<T> values() const { return {first_, first_ + size_}; }

  private:
    std::size_t size_, all_bytes_;
    void* all_;
    T* first_;
};

class Packed : public testing::TestWithParam<std::tuple<Type, std::int64_t>> {
  protected:
    void SetUp() override { choose(std::get<1>(GetParam())); }
    void TearDown() override { choose(0); } // all of them again
    static Type type() { return std::get<0>(GetParam()); }
    static std::vector<std::size_t> lengths() {
        if (layout_of(type()).block == 1) {
            return {1, 3, 63, 64, 65, 333};
        }
        return {layout_of(type()).block, 3 * layout_of(type()).block};
    }
};

TEST_P(Packed, values_are_those_of_the_reference_in_every_bit) {
    for (const std::size_t n : lengths()) {
        const auto row = random_rows(type(), n, n);
        const auto expected = reference::values_of(layout_of(type()).file_id, row, n);
        std::vector<float> actual(n + 1, 77.0F);
        unpack(type(), row.data(), n, actual.data());
        for (std::size_t i = 0; i < n; ++i) {
            ASSERT_EQ(actual[i], static_cast<float>(expected[i])) << i << " of " << n;
        }
        EXPECT_EQ(actual[n], 77.0F);
    }
}

TEST_P(Packed, rows_may_begin_at_any_byte) {
    const std::size_t n = lengths().back();
    auto row = random_rows(type(), n, 5);
    std::vector<float> aligned(n), moved(n);
    unpack(type(), row.data(), n, aligned.data());
    row.insert(row.begin(), std::byte{1});
    unpack(type(), row.data() + 1, n, moved.data());
    EXPECT_EQ(aligned, moved);
}

TEST_P(Packed, products_are_those_of_the_values) {
    constexpr std::size_t outputs = 2 * rows_at_once + 3; // some are left over
    for (const std::size_t n : lengths()) {
        for (std::size_t rows = 1; rows <= 9; ++rows) {
            for (const bool biased : {false, true}) {
                const auto matrix = random_rows(type(), outputs * n, 10 * n + rows);
                const auto weights = reference::values_of(layout_of(type()).file_id, matrix, outputs * n);
                std::vector<float> in(rows * n), bias(outputs, 0.5F), out(rows * (outputs + 1), 77.0F);
                for (std::size_t i = 0; i < in.size(); ++i) {
                    in[i] = static_cast<float>(random_bits(3, i) % 2001) / 1000.0F - 1.0F;
                }
                multiply({type(), matrix.data(), outputs, n, biased ? bias.data() : nullptr}, in.data(), rows,
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
    }
}

TEST_P(Packed, inputs_that_are_not_finite_or_next_to_nothing_count_for_what_they_are) {
    const std::size_t n = lengths().back();
    const float infinity = std::numeric_limits<float>::infinity();
    for (const std::size_t rows : {1U, 2U}) {
        for (const float odd : {std::numeric_limits<float>::quiet_NaN(), infinity, -infinity, 1e-36F, 1e-42F, 0.0F}) {
            constexpr std::size_t outputs = rows_at_once + 1;
            const auto matrix = random_rows(type(), outputs * n, 7);
            std::vector<float> in(rows * n), out(rows * outputs, 77.0F), weights(outputs * n);
            unpack(type(), matrix.data(), outputs * n, weights.data());
            const std::size_t last = n - 1; // of the first input; all else is 0
            in[last] = odd;
            multiply({type(), matrix.data(), outputs, n, nullptr}, in.data(), rows, out.data(), outputs);
            for (std::size_t o = 0; o < outputs; ++o) {
                const float expected = weights[o * n + last] * odd;
                EXPECT_EQ(std::isnan(out[o]), std::isnan(expected)) << odd;
                EXPECT_TRUE(std::isnan(expected) || out[o] == expected ||
                            std::abs(out[o] - expected) <= 1e-6F * std::abs(expected))
                    << out[o] << " for " << odd;
                EXPECT_TRUE(rows == 1 || out[outputs + o] == 0) << odd;
            }
        }
    }
}

TEST_P(Packed, T16_a_row_gives_the_same_to_the_bit_beside_any_others) {
    constexpr std::size_t outputs = 2 * rows_at_once + 3;
    const std::size_t n = lengths().back(), bytes = row_bytes(type(), n);
    const auto matrix = random_rows(type(), outputs * n, 11);
    for (const std::size_t rows : {1U, 2U, 4U, 7U}) {
        std::vector<float> in(rows * n), together(rows * outputs), alone(rows * outputs);
        for (std::size_t i = 0; i < in.size(); ++i) {
            in[i] = static_cast<float>(random_bits(4, i) % 2001) / 1000.0F - 1.0F;
        }
        multiply({type(), matrix.data(), outputs, n, nullptr}, in.data(), rows, together.data(), outputs);
        for (std::size_t o = 0; o < outputs; ++o) {
            multiply({type(), matrix.data() + o * bytes, 1, n, nullptr}, in.data(), rows, alone.data() + o, outputs);
        }
        EXPECT_EQ(together, alone) << rows << " inputs";
    }
}

// The end of a matrix may be the end of a mapped file. A touch outside ends the test by a signal.
TEST_P(Packed, T16_nothing_beside_the_rows_is_touched) {
    constexpr std::size_t outputs = 2 * rows_at_once + 3;
    for (const std::size_t n : lengths()) {
        for (const std::size_t rows : {1U, 2U, 4U, 5U}) {
            const auto matrix = random_rows(type(), outputs * n, 13);
            const std::vector<float> in(rows * n, 0.25F), bias(outputs, 0.5F), nothing(rows * outputs, 77.0F);
            std::vector<float> values(n), products = nothing;
            unpack(type(), matrix.data(), n, values.data());
            multiply({type(), matrix.data(), outputs, n, bias.data()}, in.data(), rows, products.data(), outputs);
            for (const Fence where : {Fence::before, Fence::behind}) {
                const std::vector<std::byte> row(matrix.begin(),
                                                 matrix.begin() + static_cast<std::ptrdiff_t>(row_bytes(type(), n)));
                Fenced fenced_row(row, where), fenced_matrix(matrix, where);
                Fenced fenced_values(std::vector<float>(n, 77.0F), where), fenced_in(in, where),
                    fenced_bias(bias, where), out(nothing, where);
                unpack(type(), fenced_row.data(), n, fenced_values.data());
                EXPECT_EQ(fenced_values.values(), values) << n;
                multiply({type(), fenced_matrix.data(), outputs, n, fenced_bias.data()}, fenced_in.data(), rows,
                         out.data(), outputs);
                EXPECT_EQ(out.values(), products) << rows << " inputs of " << n;
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Packed,
                         testing::Combine(testing::ValuesIn(all_types), testing::ValuesIn(instruction_sets())),
                         [](const auto& test) {
                             return std::string(layout_of(std::get<0>(test.param)).word) + "_" +
                                    hwy::TargetName(std::get<1>(test.param));
                         });

} // namespace
} // namespace plumb::decoder::cpu
