// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/packed.hpp"

#include <cstdint>
#include <cstring>
#include <type_traits>

// Highway compiles what follows once per instruction set, by including this very file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decoder/kernels/cpu/packed.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, as Highway wants it.
#include <hwy/highway.h>

#include "decoder/kernels/cpu/packed_blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace plumb::decoder::cpu::HWY_NAMESPACE {
namespace {

template <class Format>
HWY_INLINE void unpack_row(const std::uint8_t* row, std::size_t n, float* out) {
    const Lanes d;
    const std::size_t whole = n / Format::block * Format::block;
    for (std::size_t at = 0; at < whole; at += Format::block, row += Format::bytes)
        Format::each(d, row, [&](std::size_t i, auto, hn::Vec<Lanes> v) HWY_ATTR { hn::StoreU(v, d, out + at + i); });
    if constexpr (Format::single != 0)
        for (std::size_t i = whole; i < n; ++i, row += Format::single)
            out[i] = Format::one(row);
}

/// One row against `R` inputs. Sums in flight: four for one input, which hide the latency of the multiply-add.
template <class Format, std::size_t R>
HWY_INLINE void multiply_row(const std::uint8_t* row, const float* in, std::size_t inputs, float bias, float* out,
                             std::size_t stride) {
    const Lanes d;
    constexpr std::size_t sums = R == 1 ? 4 : 1;
    hn::Vec<Lanes> s0[R], s1[sums], s2[sums], s3[sums];
    for (auto& s : s0)
        s = hn::Zero(d);
    s1[0] = s2[0] = s3[0] = hn::Zero(d);
    const std::size_t whole = inputs / Format::block * Format::block;
    for (std::size_t at = 0; at < whole; at += Format::block, row += Format::bytes) {
        Format::each(d, row, [&](std::size_t i, auto quarter, hn::Vec<Lanes> v) HWY_ATTR {
            const float* x = in + at + i;
            if constexpr (R == 1) {
                auto& sum = *[&]() {
                    if constexpr (quarter.value == 0)
                        return &s0[0];
                    else if constexpr (quarter.value == 1)
                        return &s1[0];
                    else if constexpr (quarter.value == 2)
                        return &s2[0];
                    else
                        return &s3[0];
                }();
                sum = hn::MulAdd(v, hn::LoadU(d, x), sum);
            } else {
                for (std::size_t r = 0; r < R; ++r)
                    s0[r] = hn::MulAdd(v, hn::LoadU(d, x + r * inputs), s0[r]);
            }
        });
    }
    if constexpr (R == 1)
        s0[0] = hn::Add(hn::Add(s0[0], s1[0]), hn::Add(s2[0], s3[0]));
    for (std::size_t r = 0; r < R; ++r) {
        float sum = hn::GetLane(hn::SumOfLanes(d, s0[r])) + bias;
        if constexpr (Format::single != 0)
            for (std::size_t i = whole; i < inputs; ++i)
                sum += Format::one(row + (i - whole) * Format::single) * in[r * inputs + i];
        out[r * stride] = sum;
    }
}

template <class Format>
HWY_INLINE void multiply_rows(const PackedRows& weights, const float* in, std::size_t rows, float* out,
                              std::size_t stride) {
    const auto* row = static_cast<const std::uint8_t*>(weights.first);
    const std::size_t inputs = weights.inputs;
    const std::size_t bytes = row_bytes(weights.type, inputs);
    for (std::size_t i = 0; i < weights.count; ++i, row += bytes) {
        const float bias = weights.bias != nullptr ? weights.bias[i] : 0.0F;
        std::size_t r = 0;
        for (; r + 4 <= rows; r += 4)
            multiply_row<Format, 4>(row, in + r * inputs, inputs, bias, out + r * stride + i, stride);
        for (; r + 2 <= rows; r += 2)
            multiply_row<Format, 2>(row, in + r * inputs, inputs, bias, out + r * stride + i, stride);
        for (; r < rows; ++r)
            multiply_row<Format, 1>(row, in + r * inputs, inputs, bias, out + r * stride + i, stride);
    }
}

/// f with the format of the type.
template <class F>
HWY_INLINE void with_format(Type type, F&& f) {
    switch (type) {
    case Type::f32:
        return f(F32{});
    case Type::bf16:
        return f(Bfloat{});
    case Type::f16:
        return f(Half{});
    case Type::q8_0:
        return f(Q80{});
    case Type::q4_0:
        return f(Q40{});
    case Type::q4_k:
        return f(Q4K{});
    case Type::q6_k:
        return f(Q6K{});
    }
}

void unpack_any(Type type, const void* row, std::size_t n, float* out) {
    with_format(type, [&](auto format)
                          HWY_ATTR { unpack_row<decltype(format)>(static_cast<const std::uint8_t*>(row), n, out); });
}

void multiply_any(const PackedRows& weights, const float* in, std::size_t rows, float* out, std::size_t stride) {
    with_format(weights.type,
                [&](auto format) HWY_ATTR { multiply_rows<decltype(format)>(weights, in, rows, out, stride); });
}

} // namespace
} // namespace plumb::decoder::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::decoder::cpu {

HWY_EXPORT(unpack_any);
HWY_EXPORT(multiply_any);

void unpack(Type type, const void* row, std::size_t n, float* out) noexcept {
    HWY_DYNAMIC_DISPATCH(unpack_any)(type, row, n, out);
}
void multiply(const PackedRows& weights, const float* in, std::size_t rows, float* out, std::size_t stride) noexcept {
    HWY_DYNAMIC_DISPATCH(multiply_any)(weights, in, rows, out, stride);
}

} // namespace plumb::decoder::cpu
#endif
