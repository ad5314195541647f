// SPDX-License-Identifier: Apache-2.0
// Random matrices, made where they are multiplied: the values of model_maker/maker.cpp, rounded to their type as
// model_maker/quantise.cpp does, to the bit. A thread makes one block of the type and finds each value again from its
// number as often as it needs it: nothing is kept, and the code stays small. One source for nvcc and for the host.
//
// Beside what kernels.hpp asks of a machine: to_half(value), to nearest, ties to even.
#pragma once

#include <cmath>

#include "decoder/kernels/cuda/packed.hpp"
#include "decoder/sampling/random.hpp"

#if defined(__CUDACC__)
#define PLUMB_CALLED __device__ __noinline__ // one copy: what is done once need not be fast
#else
#define PLUMB_CALLED inline
#endif

namespace plumb::decoder::cuda {

/// Rounded by itself: no compiler makes one operation of it and an addition.
PLUMB_KERNEL float apart(float a, float b) {
#if defined(__CUDA_ARCH__)
    return __fmul_rn(a, b);
#else
    return a * b;
#endif
}

/// The n-th value of a stream.
PLUMB_CALLED float random_value(std::uint64_t key, std::uint64_t n, float unit) {
    const std::uint64_t bits = random_bits(key, n / 4) >> (16 * (n % 4));
    return apart(static_cast<float>(2 * static_cast<int>(bits & 0xffffu) - 65535), unit);
}

struct RandomValues {
    std::uint64_t key;
    std::uint64_t first; // of the block
    float unit;

    PLUMB_KERNEL float operator[](std::uint32_t i) const { return random_value(key, first + i, unit); }
};

/// The nearest multiple of `step`, as a whole number in [low, high]; 0 where there is no step.
PLUMB_CALLED int steps_of(float value, float step, float low, float high) {
    return step == 0 ? 0 : static_cast<int>(fminf(fmaxf(rintf(value / step), low), high));
}

/// The value of the largest size, the first of equals.
PLUMB_KERNEL float most_of(const RandomValues& values, std::uint32_t first, std::uint32_t count) {
    float most = values[first];
    PLUMB_ROLLED
    for (std::uint32_t i = first + 1; i < first + count; ++i) {
        const float value = values[i];
        most = fabsf(value) > fabsf(most) ? value : most;
    }
    return most;
}

template <class M>
PLUMB_KERNEL void fill_q8_0(M& m, const Matrix& out, const RandomValues& values, std::uint64_t block) {
    const std::uint16_t half = m.to_half(fabsf(most_of(values, 0, 32)) / 127.0f);
    const float scale = m.from_half(half);
    m.store(out.data + out.blocks * 32 + block * 2, half);
    PLUMB_ROLLED
    for (std::uint32_t i = 0; i < 32; ++i) {
        m.store(out.data + block * 32 + i, static_cast<std::uint8_t>(steps_of(values[i], scale, -127, 127)));
    }
}

template <class M>
PLUMB_KERNEL void fill_q4_0(M& m, const Matrix& out, const RandomValues& values, std::uint64_t block) {
    const std::uint16_t half = m.to_half(most_of(values, 0, 32) / -8.0f);
    const float scale = m.from_half(half);
    m.store(out.data + out.blocks * 16 + block * 2, half);
    PLUMB_ROLLED
    for (std::uint32_t i = 0; i < 16; ++i) {
        const int low = steps_of(values[i], scale, -8, 7) + 8, high = steps_of(values[i + 16], scale, -8, 7) + 8;
        m.store(out.data + block * 16 + i, static_cast<std::uint8_t>(low | high << 4));
    }
}

/// Of a run of 32 values of Q4_K: what lies below zero, and a fifteenth of the whole range.
struct RunRange {
    float least, span;
};
PLUMB_KERNEL RunRange range_of_run(const RandomValues& values, std::uint32_t run) {
    float low = values[32 * run], high = low;
    PLUMB_ROLLED
    for (std::uint32_t i = 32 * run + 1; i < 32 * run + 32; ++i) {
        const float value = values[i];
        low = fminf(low, value), high = fmaxf(high, value);
    }
    const float least = fmaxf(0.0f, -low);
    return {least, (high + least) / 15.0f};
}

template <class M>
PLUMB_KERNEL void fill_q4_k(M& m, const Matrix& out, const RandomValues& values, std::uint64_t block) {
    float span = 0, least = 0;
    PLUMB_ROLLED
    for (std::uint32_t run = 0; run < 8; ++run) {
        const RunRange range = range_of_run(values, run);
        span = fmaxf(span, range.span), least = fmaxf(least, range.least);
    }
    const std::uint16_t scale_half = m.to_half(span / 63.0f), least_half = m.to_half(least / 63.0f);
    const float scale = m.from_half(scale_half), under = m.from_half(least_half);
    const std::uint64_t at = out.data + block * 144;
    std::uint32_t lower = 0, middle = 0, upper = 0; // six bits of each run's scale and minimum
    PLUMB_ROLLED
    for (std::uint32_t run = 0; run < 8; ++run) {
        const RunRange range = range_of_run(values, run);
        const auto by = static_cast<std::uint32_t>(steps_of(range.span, scale, 0, 63));
        const auto below = static_cast<std::uint32_t>(steps_of(range.least, under, 0, 63));
        const std::uint32_t shift = run % 4 * 8;
        if (run < 4) {
            lower |= by << shift, middle |= below << shift;
        } else {
            upper |= ((by & 15u) | (below & 15u) << 4) << shift;
            lower |= by >> 4 << 6 << shift, middle |= below >> 4 << 6 << shift;
        }
        const float step = apart(scale, static_cast<float>(by)), floor = apart(under, static_cast<float>(below));
        PLUMB_ROLLED
        for (std::uint32_t i = 0; i < 32; ++i) {
            const auto value = static_cast<std::uint32_t>(steps_of(values[32 * run + i] + floor, step, 0, 15))
                               << (run % 2 * 4);
            const std::uint64_t byte = at + 16 + run / 2 * 32 + i;
            const std::uint32_t other = run % 2 == 0 ? 0u : std::uint32_t{m.template load<std::uint8_t>(byte)};
            m.store(byte, static_cast<std::uint8_t>(value | other));
        }
    }
    m.store(at, Words4{std::uint32_t{scale_half} | std::uint32_t{least_half} << 16, lower, middle, upper});
}

template <class M>
PLUMB_KERNEL void fill_q6_k(M& m, const Matrix& out, const RandomValues& values, std::uint64_t block) {
    float most = 0;
    PLUMB_ROLLED
    for (std::uint32_t run = 0; run < 16; ++run) {
        most = fmaxf(most, fabsf(most_of(values, 16 * run, 16)) / 31.0f);
    }
    const std::uint16_t half = m.to_half(most / 127.0f);
    const float scale = m.from_half(half);
    const std::uint64_t lower = out.data + block * 128, upper = out.data + out.blocks * 128 + block * 64;
    const std::uint64_t scales = out.data + out.blocks * 192 + block * 16;
    m.store(out.data + out.blocks * 208 + block * 2, half);
    PLUMB_ROLLED
    for (std::uint32_t run = 0; run < 16; ++run) {
        const int by = steps_of(fabsf(most_of(values, 16 * run, 16)) / 31.0f, scale, 0, 127);
        m.store(scales + run, static_cast<std::uint8_t>(by));
        const float step = apart(scale, static_cast<float>(by));
        // Of each half of the block: four quarters of 32 values, their bits 0 to 3 in two planes of bytes, 4 and 5 in one.
        const std::uint32_t part = run / 8, quarter = run % 8 / 2;
        PLUMB_ROLLED
        for (std::uint32_t i = run % 2 * 16; i < run % 2 * 16 + 16; ++i) {
            const auto value =
                static_cast<std::uint32_t>(steps_of(values[part * 128 + quarter * 32 + i], step, -32, 31) + 32);
            const std::uint64_t four = lower + part * 64 + quarter % 2 * 32 + i, two = upper + part * 32 + i;
            const std::uint32_t fours = quarter < 2 ? 0u : std::uint32_t{m.template load<std::uint8_t>(four)};
            const std::uint32_t twos = quarter == 0 ? 0u : std::uint32_t{m.template load<std::uint8_t>(two)};
            m.store(four, static_cast<std::uint8_t>(fours | (value & 15u) << (quarter / 2 * 4)));
            m.store(two, static_cast<std::uint8_t>(twos | value >> 4 << (2 * quarter)));
        }
    }
}

/// Grid: blocks of the type.
template <class M>
PLUMB_KERNEL void fill(M& m, const FillArgs& a) {
    const std::uint64_t block = std::uint64_t{m.block_x()} * m.threads() + m.thread();
    if (block >= a.out.blocks) {
        return;
    }
    const auto type = static_cast<Type>(a.type);
    const RandomValues values{a.key, block * a.block, a.unit};
    switch (type) {
    case Type::f32:
        m.store(a.out.data + block * 4, values[0]);
        break;
    case Type::bf16: {
        const std::uint32_t bits = m.bits_of(values[0]);
        m.store(a.out.data + block * 2, static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16));
        break;
    }
    case Type::f16:
        m.store(a.out.data + block * 2, m.to_half(values[0]));
        break;
    case Type::q8_0:
        fill_q8_0(m, a.out, values, block);
        break;
    case Type::q4_0:
        fill_q4_0(m, a.out, values, block);
        break;
    case Type::q4_k:
        fill_q4_k(m, a.out, values, block);
        break;
    case Type::q6_k:
        fill_q6_k(m, a.out, values, block);
        break;
    }
}

} // namespace plumb::decoder::cuda
