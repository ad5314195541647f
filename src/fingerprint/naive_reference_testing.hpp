// SPDX-License-Identifier: Apache-2.0
// Fingerprints as docs/reference/fingerprints.md words them, one element at a time, in long double: what the tests compare with.
// Shares definition.hpp alone with the product. Plain functions; any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "fingerprint/definition.hpp"
#include "plumb/fingerprint.hpp"

namespace plumb::fingerprint::naive {

struct ReferenceValue {
    std::uint64_t bits = 0;
    long double value = 0;
};

inline ReferenceValue value_of(const unsigned char* bytes, DType type) {
    ReferenceValue read;
    std::memcpy(&read.bits, bytes, size_of(type)); // little end first
    const auto from_fields = [&](unsigned exponent_bits, unsigned fraction_bits) {
        const std::uint64_t fraction = read.bits & ((std::uint64_t{1} << fraction_bits) - 1);
        const auto exponent = static_cast<int>(read.bits >> fraction_bits & ((std::uint64_t{1} << exponent_bits) - 1));
        const int bias = (1 << (exponent_bits - 1)) - 1;
        long double magnitude;
        if (exponent == (1 << exponent_bits) - 1) {
            magnitude = fraction != 0 ? std::nanl("") : HUGE_VALL;
        } else {
            const std::uint64_t whole = exponent == 0 ? fraction : fraction + (std::uint64_t{1} << fraction_bits);
            magnitude = ldexpl(static_cast<long double>(whole),
                               (exponent == 0 ? 1 : exponent) - bias - static_cast<int>(fraction_bits));
        }
        return (read.bits >> (exponent_bits + fraction_bits) & 1U) != 0 ? -magnitude : magnitude;
    };
    switch (type) {
    case DType::f32:
        read.value = from_fields(8, 23);
        break;
    case DType::f64:
        read.value = from_fields(11, 52);
        break;
    case DType::f16:
        read.value = from_fields(5, 10);
        break;
    case DType::bf16:
        read.value = from_fields(8, 7);
        break;
    case DType::i8:
        read.value = static_cast<long double>(read.bits) - (read.bits >= 128 ? 256 : 0);
        break;
    case DType::i32:
        read.value = static_cast<long double>(read.bits) - (read.bits >= 0x80000000U ? 0x1p32L : 0);
        break;
    }
    return read;
}

/// Row-major, by counting up an index of each dimension.
inline std::vector<ReferenceValue> elements_of(const Tensor& tensor) {
    std::vector<ReferenceValue> elements;
    std::vector<std::size_t> index(tensor.rank, 0);
    for (std::size_t n = tensor.count(); n != 0; --n) {
        std::ptrdiff_t offset = 0;
        for (unsigned i = 0; i < tensor.rank; ++i) {
            offset += static_cast<std::ptrdiff_t>(index[i]) * tensor.strides[i];
        }
        elements.push_back(value_of(static_cast<const unsigned char*>(tensor.data) +
                                        offset * static_cast<std::ptrdiff_t>(size_of(tensor.dtype)),
                                    tensor.dtype));
        for (unsigned i = tensor.rank; i-- > 0 && ++index[i] == tensor.shape[i];) {
            index[i] = 0;
        }
    }
    return elements;
}

struct Reference {
    Fingerprint exact; // of its sums only what is exact
    long double sum = 0, squares = 0, magnitudes = 0;
    std::vector<long double> sketch;
};

inline Reference reference_of(const Tensor& tensor, unsigned buckets, std::uint64_t first_index) {
    Reference made;
    Fingerprint& f = made.exact;
    made.sketch.resize(buckets);
    std::map<std::uint64_t, std::uint64_t> rows;
    long double largest = -1;
    std::uint64_t g = first_index;
    for (const ReferenceValue& element : elements_of(tensor)) {
        const std::uint64_t row = g / 32;
        const auto lane = static_cast<unsigned>(g % 32);
        ++f.count;
        rows[row] += lane_factor(lane) * fold(element.bits);
        const long double x = element.value;
        if (!std::isfinite(x)) {
            f.nans += std::isnan(x) ? 1 : 0;
            f.positive_infs += x > 0 ? 1 : 0;
            f.negative_infs += x < 0 ? 1 : 0;
            f.first_nonfinite = std::min(f.first_nonfinite, g);
        } else {
            f.min = std::isnan(f.min) || x < f.min ? static_cast<double>(x) : f.min;
            f.max = std::isnan(f.max) || x > f.max ? static_cast<double>(x) : f.max;
            if (std::fabs(x) > largest) {
                largest = std::fabs(x);
                f.largest = g;
            }
            made.sum += x;
            made.squares += x * x;
            made.magnitudes += std::fabs(x);
            made.sketch[bucket_of(row_key(row), lane, buckets / 32)] += is_negative(row_key(row), lane) ? -x : x;
        }
        ++g;
    }
    for (const auto& [row, lanes] : rows) {
        f.hash += row_hash(lanes, row_key(row));
    }
    return made;
}

} // namespace plumb::fingerprint::naive
