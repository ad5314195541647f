// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/search.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace plumb::fingerprint {
namespace {

constexpr std::size_t search_piece = 1024;

/// REQUIRES: an f16 has this value.
std::uint64_t half_bits(double magnitude) noexcept {
    if (magnitude < 0x1p-14) {
        return static_cast<std::uint64_t>(magnitude * 0x1p24);
    }
    const int exponent = std::ilogb(magnitude);
    const auto fraction = static_cast<std::uint64_t>(std::ldexp(magnitude, 10 - exponent));
    return (static_cast<std::uint64_t>(exponent + 15) << 10) + fraction - 1024;
}

/// Both signs of an integer type of `bits`.
Pattern integers(double magnitude, unsigned bits) noexcept {
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    const auto negative = (~static_cast<std::uint64_t>(magnitude) + 1) & mask;
    const bool fits = magnitude < std::ldexp(1.0, static_cast<int>(bits) - 1); // the lowest has no positive twin
    return {mask, fits ? static_cast<std::uint64_t>(magnitude) : negative, negative};
}

Pattern floats(std::uint64_t mask, std::uint64_t bits) noexcept { return {mask, bits, bits}; }

} // namespace

Pattern nonfinite_pattern(DType type) noexcept {
    const std::uint64_t exponent = type == DType::f64   ? 0x7ff0000000000000U
                                   : type == DType::f32 ? 0x7f800000U
                                   : type == DType::f16 ? 0x7c00U
                                                        : 0x7f80U;
    return floats(exponent, exponent);
}

Pattern magnitude_pattern(DType type, double magnitude) noexcept {
    switch (type) {
    case DType::f32:
        return floats(0x7fffffffU, std::bit_cast<std::uint32_t>(static_cast<float>(magnitude)));
    case DType::f64:
        return floats(0x7fffffffffffffffU, std::bit_cast<std::uint64_t>(magnitude));
    case DType::f16:
        return floats(0x7fffU, half_bits(magnitude));
    case DType::bf16:
        return floats(0x7fffU, std::bit_cast<std::uint32_t>(static_cast<float>(magnitude)) >> 16);
    case DType::i8:
        return integers(magnitude, 8);
    case DType::i32:
        return integers(magnitude, 32);
    }
    return {};
}

std::size_t find_first(const Elements& elements, DType type, std::size_t begin, std::size_t end, const Pattern& pattern,
                       const Kernels& kernels) noexcept {
    const auto find = kernels.find[static_cast<std::size_t>(type)];
    alignas(64) std::byte buffer[search_piece * sizeof(double)];
    while (begin < end) {
        const std::size_t n = std::min(end - begin, elements.contiguous() ? end - begin : search_piece);
        const std::size_t found = find(elements.read(begin, n, buffer), n, pattern.mask, pattern.one, pattern.other);
        if (found != n) {
            return begin + found;
        }
        begin += n;
    }
    return end;
}

} // namespace plumb::fingerprint
