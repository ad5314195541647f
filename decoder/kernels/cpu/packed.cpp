// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/packed.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

// Highway compiles what follows once per instruction set, by including this very file again. Not for SSSE3, which processors have
// without SSE4 only if they are older than 2008: those run the scalar code.
#define HWY_DISABLED_TARGETS HWY_SSSE3
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

// How memory is kept busy, as measured (docs/internals/benchmarks.md). Where a vector is a whole cache line: one row at a time, and
// what lies 4 KiB ahead is asked for. Where it is less: four rows by turns, whose lines the processor's own prefetcher
// follows; asking for them too disturbs it.
#if HWY_CAP_GE512
constexpr std::size_t at_once = 1, at_once_with_many = 1, sums_of_row = 4, ahead = 4096;
#elif HWY_TARGET == HWY_SCALAR
constexpr std::size_t at_once = 1, at_once_with_many = 1, sums_of_row = 2, ahead = 0;
#else
constexpr std::size_t at_once = rows_at_once, at_once_with_many = 2, sums_of_row = 2, ahead = 0;
#endif
constexpr std::size_t many = 4; // inputs: sums of fewer rows fit into the registers then
constexpr std::size_t cache_line = 64;

template <class Format>
HWY_INLINE void unpack_row(const std::uint8_t* row, std::size_t n, float* out) {
    const Lanes d;
    const std::size_t whole = n / Format::block * Format::block;
    for (std::size_t at = 0; at < whole; at += Format::block, row += Format::bytes) {
        Format::each(d, RowBlocks<1>{row, 0},
                     [&](auto, std::size_t i, auto, hn::Vec<Lanes> v) HWY_ATTR { hn::StoreU(v, d, out + at + i); });
    }
    if constexpr (Format::single != 0) {
        for (std::size_t i = whole; i < n; ++i, row += Format::single) {
            out[i] = Format::one(row);
        }
    }
}

/// sums[i] += v * x[i * stride]. Constant indices keep the sums in registers.
template <std::size_t... I>
HWY_INLINE void add_products(std::index_sequence<I...>, hn::Vec<Lanes> v, const float* x, std::size_t stride,
                             hn::Vec<Lanes>* sums) {
    const Lanes d;
    ((sums[I] = hn::MulAdd(v, hn::LoadU(d, x + I * stride), sums[I])), ...);
}

template <class Format, std::size_t N>
HWY_INLINE void ask_for_what_follows(const RowBlocks<N>& blocks) {
    if constexpr (ahead != 0) {
        for (std::size_t row = 0; row < N; ++row) {
            for (std::size_t at = 0; at < Format::bytes; at += cache_line) {
                hwy::Prefetch(blocks.of(row) + ahead + at);
            }
        }
    }
}

template <class Format>
concept has_one_scale = requires(const std::uint8_t* block) { Format::scale_of(Lanes(), block); };

/// Rows against one input, where blocks have one scale: it is multiplied once for each block and not for each vector.
/// Neighbouring blocks take turns with the sums of their row.
template <class Format, std::size_t N>
HWY_INLINE void add_scaled(RowBlocks<N> rows, const float* in, std::size_t whole, hn::Vec<Lanes>* sums) {
    const Lanes d;
    constexpr std::size_t ways = sums_of_row / 2;
    const auto add_blocks = [&](std::size_t at, auto way) HWY_ATTR PLUMB_INLINE {
        const RowBlocks<N> blocks{rows.first + at / Format::block * Format::bytes, rows.distance};
        ask_for_what_follows<Format>(blocks);
        hn::Vec<Lanes> unscaled[N];
        for_each_index<N>([&](auto row) HWY_ATTR PLUMB_INLINE { unscaled[row] = hn::Zero(d); });
        Format::each_unscaled(d, blocks, [&](auto row, std::size_t i, auto, hn::Vec<Lanes> v) HWY_ATTR PLUMB_INLINE {
            unscaled[row] = hn::MulAdd(v, hn::LoadU(d, in + at + i), unscaled[row]);
        });
        for_each_index<N>([&](auto row) HWY_ATTR PLUMB_INLINE {
            auto& sum = sums[row * ways + way];
            sum = hn::MulAdd(unscaled[row], Format::scale_of(d, blocks.of(row)), sum);
        });
    };
    std::size_t at = 0;
    for (; at + ways * Format::block <= whole; at += ways * Format::block) {
        for_each_index<ways>([&](auto way) HWY_ATTR PLUMB_INLINE { add_blocks(at + way * Format::block, way); });
    }
    for (; at < whole; at += Format::block) {
        add_blocks(at, Index<0>());
    }
}

/// `R` inputs of `size` values each, and where their products with a row go.
struct Columns {
    const float* in;
    std::size_t size;
    float* out;
    std::size_t stride;
};

/// N rows, `distance` rows apart, against `R` inputs. The sums of a row are the same for any N.
template <class Format, std::size_t R, std::size_t N>
HWY_NOINLINE void multiply_block(const RowBlocks<N>& rows, std::size_t distance, const float* bias,
                                 const Columns& columns) {
    const Lanes d;
    constexpr bool scaled_later = R == 1 && has_one_scale<Format>;
    constexpr std::size_t ways = std::max<std::size_t>(1, sums_of_row / (scaled_later ? 2 : R));
    hn::Vec<Lanes> sums[N * ways * R];
    for_each_index<N * ways * R>([&](auto i) HWY_ATTR PLUMB_INLINE { sums[i] = hn::Zero(d); });
    const std::size_t whole = columns.size / Format::block * Format::block;
    if constexpr (scaled_later) {
        add_scaled<Format>(rows, columns.in, whole, sums);
    } else {
        for (std::size_t at = 0; at < whole; at += Format::block) {
            const RowBlocks<N> blocks{rows.first + at / Format::block * Format::bytes, rows.distance};
            ask_for_what_follows<Format>(blocks);
            Format::each(d, blocks, [&](auto row, std::size_t i, auto quarter, hn::Vec<Lanes> v) HWY_ATTR PLUMB_INLINE {
                add_products(std::make_index_sequence<R>(), v, columns.in + at + i, columns.size,
                             sums + (row * ways + quarter % ways) * R);
            });
        }
    }
    for_each_index<N * R>([&](auto index) HWY_ATTR PLUMB_INLINE {
        constexpr std::size_t row = index / R, r = index % R;
        auto total = sums[row * ways * R + r];
        for (std::size_t way = 1; way < ways; ++way) {
            total = hn::Add(total, sums[(row * ways + way) * R + r]);
        }
        float sum = hn::GetLane(hn::SumOfLanes(d, total)) + (bias != nullptr ? bias[row * distance] : 0.0F);
        if constexpr (Format::single != 0) {
            const std::uint8_t* rest = rows.of(row) + whole / Format::block * Format::bytes;
            for (std::size_t i = whole; i < columns.size; ++i) {
                sum += Format::one(rest + (i - whole) * Format::single) * columns.in[r * columns.size + i];
            }
        }
        columns.out[r * columns.stride + row * distance] = sum;
    });
}

/// N rows from row i, `distance` rows apart, against all inputs.
template <class Format, std::size_t N>
HWY_INLINE void multiply_inputs(const PackedRows& weights, std::size_t i, std::size_t distance, const Columns& all,
                                std::size_t inputs) {
    const std::size_t bytes = row_bytes(weights.type, weights.inputs);
    const RowBlocks<N> rows{static_cast<const std::uint8_t*>(weights.first) + i * bytes, distance * bytes};
    const float* bias = weights.bias != nullptr ? weights.bias + i : nullptr;
    std::size_t r = 0;
    const auto multiply_some = [&](auto some) HWY_ATTR PLUMB_INLINE {
        for (; r + some <= inputs; r += some) {
            multiply_block<Format, some>(rows, distance, bias,
                                         {all.in + r * all.size, all.size, all.out + r * all.stride + i, all.stride});
        }
    };
    multiply_some(Index<4>());
    multiply_some(Index<2>());
    multiply_some(Index<1>());
}

/// Rows of N stretches of the matrix by turns, then what is left over.
template <class Format, std::size_t N>
HWY_INLINE void multiply_rows(const PackedRows& weights, const Columns& all, std::size_t inputs) {
    const std::size_t stretch = weights.count / N;
    for (std::size_t i = 0; i < stretch; ++i) {
        multiply_inputs<Format, N>(weights, i, stretch, all, inputs);
    }
    for (std::size_t i = N * stretch; i < weights.count; ++i) {
        multiply_inputs<Format, 1>(weights, i, 0, all, inputs);
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
    const Columns all{in, weights.inputs, out, stride};
    with_format(weights.type, [&](auto format) HWY_ATTR {
        if (rows >= many) {
            multiply_rows<decltype(format), at_once_with_many>(weights, all, rows);
        } else {
            multiply_rows<decltype(format), at_once>(weights, all, rows);
        }
    });
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
