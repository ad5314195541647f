// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/packed.hpp"

#include <cstdint>
#include <utility>

// Highway compiles what follows once per instruction set, by including this very file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decoder/kernels/cpu/packed.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, as Highway wants it.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "decoder/kernels/cpu/packed_blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace plumb::decoder::cpu::HWY_NAMESPACE {
namespace {

// The processor's own prefetcher stays within a page; a core that takes 40 GB/s has 4 KiB on their way.
constexpr std::size_t ahead = 4096, cache_line = 64;

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

/// sums[i] += v * x[i * stride]. Constant indices keep the sums in registers.
template <std::size_t... I>
HWY_INLINE void add_products(std::index_sequence<I...>, hn::Vec<Lanes> v, const float* x, std::size_t stride,
                             hn::Vec<Lanes>* sums) {
    const Lanes d;
    ((sums[I] = hn::MulAdd(v, hn::LoadU(d, x + I * stride), sums[I])), ...);
}

HWY_INLINE void ask_for(const std::uint8_t* row, std::size_t bytes) {
    for (std::size_t line = 0; line < bytes; line += cache_line)
        hwy::Prefetch(row + ahead + line);
}

template <class Format>
concept has_one_scale = requires(const std::uint8_t* block) {
    Format::scale_of(block);
};

/// One row against one input, where blocks have one scale: it is multiplied once for each block and not for each vector.
/// Blocks take turns with two sums.
template <class Format>
HWY_INLINE hn::Vec<Lanes> sum_of_scaled(const std::uint8_t* row, const float* in, std::size_t whole) {
    const Lanes d;
    const auto of_block = [&](const std::uint8_t* block, const float* x, hn::Vec<Lanes> sum) HWY_ATTR {
        auto unscaled = hn::Zero(d);
        Format::each_unscaled(d, block, [&](std::size_t i, auto, hn::Vec<Lanes> v) HWY_ATTR {
            unscaled = hn::MulAdd(v, hn::LoadU(d, x + i), unscaled);
        });
        return hn::MulAdd(unscaled, hn::Set(d, Format::scale_of(block)), sum);
    };
    auto first = hn::Zero(d), second = hn::Zero(d);
    std::size_t at = 0;
    for (; at + 2 * Format::block <= whole; at += 2 * Format::block, row += 2 * Format::bytes) {
        ask_for(row, 2 * Format::bytes);
        first = of_block(row, in + at, first);
        second = of_block(row + Format::bytes, in + at + Format::block, second);
    }
    if (at < whole)
        first = of_block(row, in + at, first);
    return hn::Add(first, second);
}

/// One row against `R` inputs. Four sums in flight at least, which hide the latency of the multiply-add.
template <class Format, std::size_t R>
HWY_INLINE void multiply_row(const std::uint8_t* row, const float* in, std::size_t inputs, float bias, float* out,
                             std::size_t stride) {
    const Lanes d;
    constexpr std::size_t ways = 4 / R;
    hn::Vec<Lanes> sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const std::size_t whole = inputs / Format::block * Format::block;
    if constexpr (R == 1 && has_one_scale<Format>)
        sums[0] = sum_of_scaled<Format>(row, in, whole);
    else
        for (std::size_t at = 0; at < whole; at += Format::block, row += Format::bytes) {
            ask_for(row, Format::bytes);
            Format::each(d, row, [&](std::size_t i, auto quarter, hn::Vec<Lanes> v) HWY_ATTR {
                add_products(std::make_index_sequence<R>(), v, in + at + i, inputs, sums + quarter.value % ways * R);
            });
        }
    for (std::size_t r = 0; r < R; ++r) {
        auto total = sums[r];
        for (std::size_t way = 1; way < ways; ++way)
            total = hn::Add(total, sums[way * R + r]);
        float sum = hn::GetLane(hn::SumOfLanes(d, total)) + bias;
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
