// SPDX-License-Identifier: Apache-2.0
// What the hash must see: any change of one element, and any two different elements that trade places.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "plumb/fingerprint.hpp"

namespace plumb::fingerprint {
namespace {

constexpr DType hashed_types[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8, DType::i32};

using Bytes = std::vector<unsigned char>;

std::uint64_t hash_of(const Bytes& bytes, DType type) {
    return fingerprint_of(tensor(bytes.data(), type, {bytes.size() / size_of(type)}))->hash;
}
std::uint64_t get(const Bytes& bytes, DType type, std::size_t i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * size_of(type), size_of(type));
    return bits;
}
void put(Bytes& bytes, DType type, std::size_t i, std::uint64_t bits) {
    std::memcpy(bytes.data() + i * size_of(type), &bits, size_of(type));
}
Bytes random_tensor(DType type, std::size_t n, std::mt19937_64& random) {
    Bytes bytes(n * size_of(type));
    for (unsigned char& byte : bytes) {
        byte = static_cast<unsigned char>(random());
    }
    return bytes;
}

TEST(FingerprintHash, T9_sees_every_change_of_a_single_element_wherever_it_is) {
    std::mt19937_64 random(1);
    for (const DType type : hashed_types) {
        for (int round = 0; round < 20'000; ++round) {
            const std::size_t n = 1 + random() % 400;
            Bytes bytes = random_tensor(type, n, random);
            const std::uint64_t before = hash_of(bytes, type);
            const std::size_t at = random() % n;
            const std::uint64_t old = get(bytes, type, at);
            // one unit in the last place, one bit, or anything
            const std::uint64_t bit = std::uint64_t{1} << random() % (8 * size_of(type));
            const std::uint64_t changed = round % 3 == 0 ? old + 1 : round % 3 == 1 ? old ^ bit : random();
            put(bytes, type, at, changed);
            ASSERT_EQ(hash_of(bytes, type) == before, get(bytes, type, at) == old) << dtype_word(type) << " at " << at;
        }
    }
}

TEST(FingerprintHash, T9_sees_two_elements_that_trade_places_even_where_signs_alone_differ) {
    std::mt19937_64 random(2);
    for (const DType type : hashed_types) {
        const std::uint64_t top = std::uint64_t{1} << (8 * size_of(type) - 1);
        for (int round = 0; round < 20'000; ++round) {
            const std::size_t n = 2 + random() % 300;
            Bytes bytes = random_tensor(type, n, random);
            const std::size_t a = random() % n, b = (a + 1 + random() % (n - 1)) % n;
            if (round % 2 == 0) { // x and -x, or 0 and a power of two
                put(bytes, type, b, round % 4 == 0 ? get(bytes, type, a) ^ top : 0);
                put(bytes, type, a, round % 4 == 0 ? get(bytes, type, a) : top >> 1);
            }
            const std::uint64_t before = hash_of(bytes, type), first = get(bytes, type, a),
                                second = get(bytes, type, b);
            put(bytes, type, a, second);
            put(bytes, type, b, first);
            ASSERT_EQ(hash_of(bytes, type) == before, first == second) << dtype_word(type) << ' ' << a << ' ' << b;
        }
    }
}

TEST(FingerprintHash, T9_sees_permutations_within_a_row_and_of_whole_rows) {
    std::mt19937_64 random(3);
    for (const DType type : hashed_types) {
        for (int round = 0; round < 2'000; ++round) {
            const std::size_t rows = 2 + random() % 40, n = rows * 32;
            const Bytes bytes = random_tensor(type, n, random);
            Bytes shuffled = bytes;
            if (round % 2 == 0) {
                const std::size_t row = random() % rows;
                std::vector<std::size_t> order(32);
                std::iota(order.begin(), order.end(), 0U);
                std::shuffle(order.begin(), order.end(), random);
                for (std::size_t i = 0; i < 32; ++i) {
                    put(shuffled, type, row * 32 + i, get(bytes, type, row * 32 + order[i]));
                }
            } else {
                const auto size = static_cast<std::ptrdiff_t>(32 * size_of(type));
                const auto a = static_cast<std::ptrdiff_t>(random() % rows),
                           b = static_cast<std::ptrdiff_t>(random() % rows);
                std::swap_ranges(shuffled.begin() + a * size, shuffled.begin() + (a + 1) * size,
                                 shuffled.begin() + b * size);
            }
            ASSERT_EQ(hash_of(bytes, type) == hash_of(shuffled, type), bytes == shuffled) << dtype_word(type);
        }
    }
}

TEST(FingerprintHash, differs_for_every_place_and_pattern_of_few_signs) {
    // 1 and -1 alone: what a mask, a rotation of positions or a one-hot vector leaves.
    for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
        const std::uint64_t one = type == DType::f64   ? 0x3ff0000000000000U
                                  : type == DType::f32 ? 0x3f800000U
                                  : type == DType::f16 ? 0x3c00U
                                                       : 0x3f80U;
        const std::uint64_t top = std::uint64_t{1} << (8 * size_of(type) - 1);
        std::set<std::uint64_t> seen;
        std::size_t made = 0;
        Bytes bytes(64 * size_of(type));
        for (std::size_t i = 0; i < 64; ++i) {
            put(bytes, type, i, one);
        }
        for (std::size_t a = 0; a < 64; ++a) {
            for (std::size_t b = a; b < 64; ++b) {
                Bytes flipped = bytes;
                put(flipped, type, a, one | top);
                put(flipped, type, b, one | top);
                seen.insert(hash_of(flipped, type));
                ++made;
            }
        }
        EXPECT_EQ(seen.size(), made) << dtype_word(type);
    }
}

} // namespace
} // namespace plumb::fingerprint
