// SPDX-License-Identifier: Apache-2.0
#include "decoder/model_maker/quantise.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace plumb::decoder {
namespace {

std::uint16_t bhalf_of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

float float_of(std::uint16_t half) {
    const int exponent = half >> 10 & 31;
    const float fraction = static_cast<float>(half & 1023);
    const float size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024.0F + fraction, exponent - 25);
    return (half & 0x8000) != 0 ? -size : size;
}

/// Stores a scale and returns what a reader will see.
float put_half(float value, std::byte* out) {
    const std::uint16_t half = half_of(value);
    std::memcpy(out, &half, 2);
    return float_of(half);
}

/// The nearest multiple of `step` as a whole number in [low, high]; 0 where there is no step.
int steps_of(float value, float step, int low, int high) {
    if (step == 0) {
        return std::clamp(0, low, high);
    }
    return static_cast<int>(
        std::clamp(std::nearbyint(value / step), static_cast<float>(low), static_cast<float>(high)));
}

float largest_size(const float* values, std::size_t count) {
    float out = 0;
    for (std::size_t i = 0; i < count; ++i) {
        out = std::max(out, std::abs(values[i]));
    }
    return out;
}

void q8_0(const float* values, std::byte* out) {
    const float scale = put_half(largest_size(values, 32) / 127.0F, out);
    for (std::size_t i = 0; i < 32; ++i) {
        out[2 + i] = static_cast<std::byte>(steps_of(values[i], scale, -127, 127));
    }
}

/// The value of the largest size becomes -8, the one end that has no partner.
void q4_0(const float* values, std::byte* out) {
    const float* most =
        std::max_element(values, values + 32, [](float a, float b) { return std::abs(a) < std::abs(b); });
    const float scale = put_half(*most / -8.0F, out);
    for (std::size_t i = 0; i < 16; ++i) {
        const int low = steps_of(values[i], scale, -8, 7) + 8;
        const int high = steps_of(values[i + 16], scale, -8, 7) + 8;
        out[2 + i] = static_cast<std::byte>(low | high << 4);
    }
}

void q4_k(const float* values, std::byte* out) {
    float spans[8], leasts[8];
    for (std::size_t run = 0; run < 8; ++run) {
        const auto [low, high] = std::minmax_element(values + 32 * run, values + 32 * run + 32);
        leasts[run] = std::max(0.0F, -*low);
        spans[run] = (*high + leasts[run]) / 15.0F;
    }
    const float scale = put_half(std::max(0.0F, *std::max_element(spans, spans + 8)) / 63.0F, out);
    const float least = put_half(*std::max_element(leasts, leasts + 8) / 63.0F, out + 2);
    std::fill(out + 4, out + 16, std::byte{0});
    for (std::size_t run = 0; run < 8; ++run) {
        const int by = steps_of(spans[run], scale, 0, 63);
        const int under = steps_of(leasts[run], least, 0, 63);
        std::byte* packed = out + 4;
        if (run < 4) {
            packed[run] |= static_cast<std::byte>(by);
            packed[run + 4] |= static_cast<std::byte>(under);
        } else {
            packed[run + 4] |= static_cast<std::byte>((by & 15) | (under & 15) << 4);
            packed[run - 4] |= static_cast<std::byte>(by >> 4 << 6);
            packed[run] |= static_cast<std::byte>(under >> 4 << 6);
        }
        const float step = scale * static_cast<float>(by);
        const float floor = least * static_cast<float>(under);
        for (std::size_t i = 0; i < 32; ++i) {
            const int value = steps_of(values[32 * run + i] + floor, step, 0, 15);
            std::byte& byte = out[16 + 16 * (run & ~std::size_t{1}) + i];
            byte = run % 2 == 0 ? static_cast<std::byte>(value) : byte | static_cast<std::byte>(value << 4);
        }
    }
}

void q6_k(const float* values, std::byte* out) {
    float sizes[16];
    for (std::size_t run = 0; run < 16; ++run) {
        sizes[run] = largest_size(values + 16 * run, 16) / 31.0F;
    }
    const float scale = put_half(*std::max_element(sizes, sizes + 16) / 127.0F, out + 208);
    std::fill(out, out + 192, std::byte{0});
    for (std::size_t run = 0; run < 16; ++run) {
        const int by = steps_of(sizes[run], scale, 0, 127);
        out[192 + run] = static_cast<std::byte>(by);
        for (std::size_t i = 16 * run; i < 16 * run + 16; ++i) {
            const int value = steps_of(values[i], scale * static_cast<float>(by), -32, 31) + 32;
            const std::size_t part = i / 128, quarter = i % 128 / 32, l = i % 32;
            out[64 * part + 32 * (quarter % 2) + l] |= static_cast<std::byte>((value & 15) << (quarter < 2 ? 0 : 4));
            out[128 + 32 * part + l] |= static_cast<std::byte>(value >> 4 << (2 * quarter));
        }
    }
}

void plain(Type type, float value, std::byte* out) {
    if (type == Type::f32) {
        std::memcpy(out, &value, 4);
        return;
    }
    const std::uint16_t bits = type == Type::bf16 ? bhalf_of(value) : half_of(value);
    std::memcpy(out, &bits, 2);
}

} // namespace

std::uint16_t half_of(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
    const std::uint32_t size = bits & 0x7fffffffU;
    if (size >= 0x47800000U) {
        return sign | (size > 0x7f800000U ? 0x7e00U : 0x7c00U);
    }
    if (size < 0x38800000U) {
        // Below 2^-14 a half counts in steps of 2^-24; the product is exact, and so is the rounding to a whole number.
        const float steps = std::bit_cast<float>(size) * 0x1p24F;
        return sign | static_cast<std::uint16_t>(std::nearbyint(steps));
    }
    const std::uint32_t moved = size - 0x38000000U;
    return sign | static_cast<std::uint16_t>((moved + 0xfffU + ((moved >> 13) & 1U)) >> 13);
}

void quantise(Type type, const float* values, std::size_t count, std::byte* out) {
    const TypeLayout layout = layout_of(type);
    for (std::size_t at = 0; at < count; at += layout.block, out += layout.bytes) {
        switch (type) {
        case Type::q8_0:
            q8_0(values + at, out);
            break;
        case Type::q4_0:
            q4_0(values + at, out);
            break;
        case Type::q4_k:
            q4_k(values + at, out);
            break;
        case Type::q6_k:
            q6_k(values + at, out);
            break;
        default:
            plain(type, values[at], out);
        }
    }
}

} // namespace plumb::decoder
