// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the fingerprint kernels on one element and on what two lanes have seen: the same text for nvcc and
// for the tests on the host. Plain C++17, no state, any thread.
#pragma once

#include <cstdint>
#include <cstring>

#include "fingerprint/cuda/kernel_types.hpp"
#include "fingerprint/definition.hpp"

namespace plumb::fingerprint {

#if defined(__CUDACC__)
#define PLUMB_OUT_OF_LINE static __noinline__
#else
#define PLUMB_OUT_OF_LINE inline
#endif

inline constexpr std::uint64_t no_place = ~std::uint64_t{0};

template <class To, class From>
PLUMB_HOST_DEVICE inline To same_bits(From from) noexcept {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

/// Values of plumb::DType.
enum KernelType : std::uint32_t { kernel_f32, kernel_f64, kernel_f16, kernel_bf16, kernel_i8, kernel_i32 };

PLUMB_HOST_DEVICE inline float value_of_half(std::uint16_t bits) noexcept {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t exponent = bits >> 10 & 31u;
    const std::uint32_t fraction = bits & 1023u;
    if (exponent == 0) { // zero and subnormals: a whole number of 2^-24
        const float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-8f;
        return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
    return same_bits<float>(sign | wide << 23 | fraction << 13);
}

template <std::uint32_t type>
struct ElementOf;
template <>
struct ElementOf<kernel_f32> {
    using Bits = std::uint32_t;
    static PLUMB_HOST_DEVICE double value(Bits bits) noexcept { return static_cast<double>(same_bits<float>(bits)); }
};
template <>
struct ElementOf<kernel_f64> {
    using Bits = std::uint64_t;
    static PLUMB_HOST_DEVICE double value(Bits bits) noexcept { return same_bits<double>(bits); }
};
template <>
struct ElementOf<kernel_f16> {
    using Bits = std::uint16_t;
    static PLUMB_HOST_DEVICE double value(Bits bits) noexcept { return static_cast<double>(value_of_half(bits)); }
};
template <>
struct ElementOf<kernel_bf16> {
    using Bits = std::uint16_t;
    static PLUMB_HOST_DEVICE double value(Bits bits) noexcept {
        return static_cast<double>(same_bits<float>(static_cast<std::uint32_t>(bits) << 16));
    }
};
template <>
struct ElementOf<kernel_i8> {
    using Bits = std::uint8_t;
    static PLUMB_HOST_DEVICE double value(Bits bits) noexcept {
        return static_cast<double>(static_cast<std::int8_t>(bits));
    }
};
template <>
struct ElementOf<kernel_i32> {
    using Bits = std::uint32_t;
    static PLUMB_HOST_DEVICE double value(Bits bits) noexcept {
        return static_cast<double>(static_cast<std::int32_t>(bits));
    }
};

/// From data, in elements.
PLUMB_HOST_DEVICE PLUMB_OUT_OF_LINE std::int64_t offset_of(const KernelTensor& tensor, std::uint64_t index) noexcept {
    std::int64_t offset = 0;
    for (unsigned i = tensor.rank; i-- > 1;) {
        offset += static_cast<std::int64_t>(index % tensor.shape[i]) * tensor.strides[i];
        index /= tensor.shape[i];
    }
    return offset + static_cast<std::int64_t>(index) * tensor.strides[0];
}

/// What a lane has seen.
struct Seen {
    std::uint64_t nans = 0;
    std::uint64_t positive_infs = 0;
    std::uint64_t negative_infs = 0;
    std::uint64_t first_nonfinite = no_place;
    std::uint64_t largest = no_place;
    std::uint64_t hash = 0; // of whole rows
    double min = 1.0 / 0.0;
    double max = -1.0 / 0.0;
    double magnitude = -1; // of `largest`
    double sum = 0;
    double squares = 0;
    std::uint64_t logit = no_place;
    double logit_value = -1.0 / 0.0;
    double logit_second = -1.0 / 0.0;
};

PLUMB_HOST_DEVICE inline bool is_finite(double x) noexcept { return x - x == 0; }

/// An element, in ascending order of `place` for one lane. False: not finite.
PLUMB_HOST_DEVICE inline bool see(Seen& seen, double x, std::uint64_t place) noexcept {
    if (!is_finite(x)) {
        seen.first_nonfinite = place < seen.first_nonfinite ? place : seen.first_nonfinite;
        ++(x != x ? seen.nans : x > 0 ? seen.positive_infs : seen.negative_infs);
        return false;
    }
    const double magnitude = x < 0 ? -x : x;
    seen.min = x < seen.min ? x : seen.min;
    seen.max = x > seen.max ? x : seen.max;
    if (magnitude > seen.magnitude) {
        seen.magnitude = magnitude;
        seen.largest = place;
    }
    seen.sum += x;
    seen.squares += x * x;
    return true;
}

/// A finite logit; `place` within its row.
PLUMB_HOST_DEVICE inline void see_logit(Seen& seen, double x, std::uint64_t place) noexcept {
    if (seen.logit == no_place || x > seen.logit_value) {
        seen.logit_second = seen.logit_value;
        seen.logit_value = x;
        seen.logit = place;
    } else if (x > seen.logit_second) {
        seen.logit_second = x;
    }
}

PLUMB_HOST_DEVICE inline void merge_logits(Seen& seen, const Seen& other) noexcept {
    if (other.logit == no_place) {
        return;
    }
    const bool wins = seen.logit == no_place || other.logit_value > seen.logit_value ||
                      (other.logit_value == seen.logit_value && other.logit < seen.logit);
    const double loser = wins ? seen.logit_value : other.logit_value;
    double second = seen.logit_second > other.logit_second ? seen.logit_second : other.logit_second;
    second = loser > second ? loser : second;
    if (wins) {
        seen.logit = other.logit;
        seen.logit_value = other.logit_value;
    }
    seen.logit_second = second;
}

/// In any order: but for sums, the same.
PLUMB_HOST_DEVICE inline void merge(Seen& seen, const Seen& other) noexcept {
    seen.nans += other.nans;
    seen.positive_infs += other.positive_infs;
    seen.negative_infs += other.negative_infs;
    seen.first_nonfinite = other.first_nonfinite < seen.first_nonfinite ? other.first_nonfinite : seen.first_nonfinite;
    seen.hash += other.hash;
    seen.min = other.min < seen.min ? other.min : seen.min;
    seen.max = other.max > seen.max ? other.max : seen.max;
    if (other.magnitude > seen.magnitude || (other.magnitude == seen.magnitude && other.largest < seen.largest)) {
        seen.magnitude = other.magnitude;
        seen.largest = other.largest;
    }
    seen.sum += other.sum;
    seen.squares += other.squares;
    merge_logits(seen, other);
}

/// As words of a slot or partial result; `store(word, value)`.
template <class Store>
PLUMB_HOST_DEVICE inline void store_seen(const Seen& seen, Store store) noexcept {
    store(word_nans, seen.nans);
    store(word_positive_infs, seen.positive_infs);
    store(word_negative_infs, seen.negative_infs);
    store(word_first_nonfinite, seen.first_nonfinite);
    store(word_largest, seen.largest);
    store(word_hash, seen.hash);
    store(word_min, same_bits<std::uint64_t>(seen.min));
    store(word_max, same_bits<std::uint64_t>(seen.max));
    store(word_sum, same_bits<std::uint64_t>(seen.sum));
    store(word_squares, same_bits<std::uint64_t>(seen.squares));
    store(word_logit, seen.logit);
    store(word_logit_value, same_bits<std::uint64_t>(seen.logit_value));
    store(word_logit_second, same_bits<std::uint64_t>(seen.logit_second));
    store(word_magnitude, same_bits<std::uint64_t>(seen.magnitude));
}

/// `load(word)`.
template <class Load>
PLUMB_HOST_DEVICE inline Seen load_seen(Load load) noexcept {
    Seen seen;
    seen.nans = load(word_nans);
    seen.positive_infs = load(word_positive_infs);
    seen.negative_infs = load(word_negative_infs);
    seen.first_nonfinite = load(word_first_nonfinite);
    seen.largest = load(word_largest);
    seen.hash = load(word_hash);
    seen.min = same_bits<double>(load(word_min));
    seen.max = same_bits<double>(load(word_max));
    seen.sum = same_bits<double>(load(word_sum));
    seen.squares = same_bits<double>(load(word_squares));
    seen.logit = load(word_logit);
    seen.logit_value = same_bits<double>(load(word_logit_value));
    seen.logit_second = same_bits<double>(load(word_logit_second));
    seen.magnitude = same_bits<double>(load(word_magnitude));
    return seen;
}

} // namespace plumb::fingerprint
