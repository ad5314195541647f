// SPDX-License-Identifier: Apache-2.0
// One element of a tensor in host memory, as a double: exact for every dtype. For what is not worth vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "plumb/fingerprint.hpp"

namespace plumb::fingerprint {

template <class T>
T element_bits(const void* data, std::ptrdiff_t at) noexcept {
    T bits;
    std::memcpy(&bits, static_cast<const char*>(data) + at * static_cast<std::ptrdiff_t>(sizeof bits), sizeof bits);
    return bits;
}

/// IEEE binary16.
inline double half_value(std::uint16_t bits) noexcept {
    const unsigned exponent = bits >> 10 & 31u;
    const double fraction = bits & 1023u;
    double magnitude = 0;
    if (exponent == 31) {
        magnitude = fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    } else if (exponent == 0) {
        magnitude = fraction * 0x1p-24;
    } else {
        magnitude = (1024.0 + fraction) * 0x1p-25 * static_cast<double>(1u << exponent);
    }
    return (bits & 0x8000u) != 0 ? -magnitude : magnitude;
}

/// `at`: offset from data, in elements.
inline double element_value(const void* data, DType type, std::ptrdiff_t at) noexcept {
    switch (type) {
    case DType::f32:
        return static_cast<double>(element_bits<float>(data, at));
    case DType::f64:
        return element_bits<double>(data, at);
    case DType::f16:
        return half_value(element_bits<std::uint16_t>(data, at));
    case DType::bf16: {
        const std::uint32_t widened = static_cast<std::uint32_t>(element_bits<std::uint16_t>(data, at)) << 16;
        float value;
        std::memcpy(&value, &widened, sizeof value);
        return static_cast<double>(value);
    }
    case DType::i8:
        return element_bits<std::int8_t>(data, at);
    case DType::i32:
        return element_bits<std::int32_t>(data, at);
    }
    return std::numeric_limits<double>::quiet_NaN();
}

} // namespace plumb::fingerprint
