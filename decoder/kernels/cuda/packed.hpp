// SPDX-License-Identifier: Apache-2.0
// Eight values of a matrix in a row, widened: load_8<type>(machine, matrix, row, eight, out), eights counted from the row's
// begin. Neighbouring lanes read neighbouring eights, in loads of up to 16 bytes. One source for nvcc and for the host.
#pragma once

#include "decoder/kernels/cuda/arguments.hpp"

#if defined(__CUDACC__)
#define PLUMB_KERNEL __device__ __forceinline__
#define PLUMB_UNROLL _Pragma("unroll")
#define PLUMB_ROLLED _Pragma("unroll 1")
#else
#define PLUMB_KERNEL inline
#define PLUMB_UNROLL
#define PLUMB_ROLLED
#endif

namespace plumb::decoder::cuda {

struct alignas(8) Words2 {
    std::uint32_t x, y;
};
struct alignas(16) Words4 {
    std::uint32_t x, y, z, w;
};
struct alignas(16) Floats4 {
    float x, y, z, w;
};

PLUMB_KERNEL float float_of(std::uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return __uint_as_float(bits);
#else
    return __builtin_bit_cast(float, bits);
#endif
}
PLUMB_KERNEL std::uint32_t byte_of(std::uint32_t word, unsigned index) { return word >> (8 * index) & 255u; }
PLUMB_KERNEL std::uint32_t byte_of(Words2 words, unsigned index) {
    return index < 4 ? byte_of(words.x, index) : byte_of(words.y, index - 4);
}
PLUMB_KERNEL float signed_byte(std::uint32_t byte) { return static_cast<float>(static_cast<std::int8_t>(byte)); }

template <class M>
PLUMB_KERNEL void load_floats_8(M& m, std::uint64_t address, float (&out)[8]) {
    const Floats4 a = m.template load<Floats4>(address), b = m.template load<Floats4>(address + 16);
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w, out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
}

template <Type type, class M>
PLUMB_KERNEL void load_8(M& m, const Matrix& matrix, std::uint64_t row, std::uint32_t eight, float (&out)[8]) {
    const std::uint64_t at = row * (matrix.cols / 8) + eight; // eights before it
    if constexpr (type == Type::f32) {
        const Words4 a = m.template stream<Words4>(matrix.data + at * 32);
        const Words4 b = m.template stream<Words4>(matrix.data + at * 32 + 16);
        const std::uint32_t words[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
        PLUMB_UNROLL
        for (unsigned i = 0; i < 8; ++i) {
            out[i] = float_of(words[i]);
        }
    } else if constexpr (type == Type::bf16 || type == Type::f16) {
        const Words4 all = m.template stream<Words4>(matrix.data + at * 16);
        const std::uint32_t words[4] = {all.x, all.y, all.z, all.w};
        PLUMB_UNROLL
        for (unsigned i = 0; i < 4; ++i) {
            out[2 * i] = type == Type::bf16 ? float_of(words[i] << 16)
                                            : m.from_half(static_cast<std::uint16_t>(words[i] & 0xffffu));
            out[2 * i + 1] = type == Type::bf16 ? float_of(words[i] & 0xffff0000u)
                                                : m.from_half(static_cast<std::uint16_t>(words[i] >> 16));
        }
    } else if constexpr (type == Type::q8_0) {
        const Words2 values = m.template stream<Words2>(matrix.data + at * 8);
        const float scale = m.from_half(m.template load<std::uint16_t>(matrix.data + matrix.blocks * 32 + at / 4 * 2));
        PLUMB_UNROLL
        for (unsigned i = 0; i < 8; ++i) {
            out[i] = scale * signed_byte(byte_of(values, i));
        }
    } else if constexpr (type == Type::q4_0) {
        const unsigned shift = eight % 4 / 2 * 4; // the second half of a block is the upper four bits
        const Words2 values = m.template stream<Words2>(matrix.data + at / 4 * 16 + at % 2 * 8);
        const float scale = m.from_half(m.template load<std::uint16_t>(matrix.data + matrix.blocks * 16 + at / 4 * 2));
        PLUMB_UNROLL
        for (unsigned i = 0; i < 8; ++i) {
            out[i] = scale * (static_cast<float>(byte_of(values, i) >> shift & 15u) - 8.0f);
        }
    } else if constexpr (type == Type::q4_k) {
        const std::uint64_t block = matrix.data + at / 32 * 144;
        const unsigned run = eight % 32 / 4; // of 32 values
        const Words4 head = m.template stream<Words4>(block);
        const Words2 values = m.template stream<Words2>(block + 16 + run / 2 * 32 + at % 4 * 8);
        const unsigned r = run % 4;
        const std::uint32_t scale =
            run < 4 ? byte_of(head.y, r) & 63u : (byte_of(head.w, r) & 15u) | byte_of(head.y, r) >> 6 << 4;
        const std::uint32_t least =
            run < 4 ? byte_of(head.z, r) & 63u : byte_of(head.w, r) >> 4 | byte_of(head.z, r) >> 6 << 4;
        const float times = m.from_half(static_cast<std::uint16_t>(head.x & 0xffffu)) * static_cast<float>(scale);
        const float minus = m.from_half(static_cast<std::uint16_t>(head.x >> 16)) * static_cast<float>(least);
        PLUMB_UNROLL
        for (unsigned i = 0; i < 8; ++i) {
            out[i] = times * static_cast<float>(byte_of(values, i) >> (run % 2 * 4) & 15u) - minus;
        }
    } else {
        static_assert(type == Type::q6_k);
        const std::uint64_t block = at / 32;
        const unsigned eight_of_block = eight % 32, part = eight_of_block / 16, run = eight_of_block % 16 / 4;
        const Words2 lower =
            m.template stream<Words2>(matrix.data + block * 128 + part * 64 + run % 2 * 32 + at % 4 * 8);
        const Words2 upper =
            m.template stream<Words2>(matrix.data + matrix.blocks * 128 + block * 64 + part * 32 + at % 4 * 8);
        const float scale = signed_byte(
            m.template load<std::uint8_t>(matrix.data + matrix.blocks * 192 + block * 16 + eight_of_block / 2));
        const float whole = m.from_half(m.template load<std::uint16_t>(matrix.data + matrix.blocks * 208 + block * 2));
        PLUMB_UNROLL
        for (unsigned i = 0; i < 8; ++i) {
            const std::uint32_t value =
                (byte_of(lower, i) >> (run / 2 * 4) & 15u) + (byte_of(upper, i) >> (2 * run) & 3u) * 16;
            out[i] = whole * scale * (static_cast<float>(value) - 32.0f);
        }
    }
}

} // namespace plumb::decoder::cuda
