// SPDX-License-Identifier: Apache-2.0
// The loops of kernels.hpp for one instruction set: compiled once for each by kernels_vector.cpp, which owns it.
// Every sum has the shape that kernels_plain.cpp spells out. No state: any thread.
#if defined(PLUMB_KERNELS_VECTOR_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_KERNELS_VECTOR_INL
#undef PLUMB_KERNELS_VECTOR_INL
#else
#define PLUMB_KERNELS_VECTOR_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "fingerprint/definition.hpp"
#include "fingerprint/element.hpp"
#include "fingerprint/kernels.hpp"

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace plumb::fingerprint::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::ScalableTag<std::uint32_t>;
using I32 = hn::ScalableTag<std::int32_t>;
using F32 = hn::ScalableTag<float>;
using U64 = hn::ScalableTag<std::uint64_t>;
using F64 = hn::ScalableTag<double>;
constexpr std::size_t wide = HWY_LANES(std::uint32_t);
constexpr std::size_t half = wide / 2; // lanes of 64 bits
static_assert(wide >= 4 && wide <= partial_sums);
/// So far ahead lines are asked for: the arithmetic of a row leaves the processor's own look-ahead too little room.
constexpr std::size_t bytes_ahead = 8192;
constexpr std::size_t bytes_of_line = 64;

/// Whether there is an instruction that multiplies 64 bits; elsewhere halves are. (On Zen 5 a twelfth faster; Intel's does
/// as much work as the halves, by its tables: not measured.)
constexpr bool multiplies_whole = HWY_TARGET == HWY_AVX3;

/// Factors, and their halves for multiplications of 32 bits. Of the whole ones of a vector of 32-bit lanes the even come
/// before the odd.
struct Factors {
    alignas(64) std::uint64_t whole[lanes_of_row];
    alignas(64) std::uint64_t whole64[lanes_of_row];
    alignas(64) std::uint32_t low[lanes_of_row];
    alignas(64) std::uint32_t low_of_next[lanes_of_row]; // at even lanes, for the odd neighbour
    alignas(64) std::uint32_t high[lanes_of_row];
    alignas(64) std::uint64_t low64[lanes_of_row];
    alignas(64) std::uint64_t crossed[lanes_of_row]; // halves exchanged
    alignas(64) std::uint64_t shift[lanes_of_row];   // brings a lane's sign to the top of 64 bits
};
constexpr Factors factors = [] {
    Factors made{};
    for (unsigned lane = 0; lane < lanes_of_row; ++lane) {
        const std::uint64_t factor = lane_factor(lane);
        made.whole[lane / wide * wide + lane % 2 * half + lane % wide / 2] = factor;
        made.whole64[lane] = factor;
        made.low[lane] = static_cast<std::uint32_t>(factor);
        made.low_of_next[lane & ~1U] = static_cast<std::uint32_t>(factor); // the odd one comes last
        made.high[lane] = static_cast<std::uint32_t>(factor >> 32);
        made.low64[lane] = factor & 0xffffffffU;
        made.crossed[lane] = factor >> 32 | factor << 32;
        made.shift[lane] = 63 - lane;
    }
    return made;
}();

/// By halves: Highway's own sum overflows as a signed one in AVX-512, which sanitizers stop.
template <class V>
HWY_INLINE std::uint64_t sum_of_lanes(V v) {
    if constexpr (hn::MaxLanes(hn::DFromV<V>()) > 2) {
        const hn::Half<hn::DFromV<V>> dh;
        return sum_of_lanes(hn::Add(hn::LowerHalf(dh, v), hn::UpperHalf(dh, v)));
    } else {
        return hn::GetLane(hn::Add(v, hn::Shuffle01(v)));
    }
}

/// Sum over a row of factor * y mod 2^64: products of the lower halves, and of what only reaches the upper 32 bits.
struct SumOfHalves {
    hn::Vec<U64> low;
    hn::Vec<U32> cross;

    static HWY_INLINE SumOfHalves zero() { return {hn::Zero(U64()), hn::Zero(U32())}; }
    HWY_INLINE void add(hn::Vec<U32> y, std::size_t first) {
        const U32 d;
        low = hn::Add(low, hn::MulEven(y, hn::Load(d, factors.low + first)));
        const auto odd = hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(U64(), y)));
        low = hn::Add(low, hn::MulEven(odd, hn::Load(d, factors.low_of_next + first)));
        cross = hn::Add(cross, hn::Mul(y, hn::Load(d, factors.high + first)));
    }
    HWY_INLINE void add64(hn::Vec<U64> y, std::size_t first) {
        const U32 d;
        const auto halves = hn::BitCast(d, y);
        low = hn::Add(low, hn::MulEven(halves, hn::BitCast(d, hn::Load(U64(), factors.low64 + first))));
        cross = hn::Add(cross, hn::Mul(halves, hn::BitCast(d, hn::Load(U64(), factors.crossed + first))));
    }
    HWY_INLINE std::uint64_t total() const {
        const U64 d;
        const auto crossed = hn::BitCast(d, cross);
        const auto upper = hn::And(crossed, hn::Set(d, 0xffffffff00000000U));
        return sum_of_lanes(hn::Add(low, hn::Add(hn::ShiftLeft<32>(crossed), upper)));
    }
};

/// The same sum where whole words are multiplied.
struct SumOfWhole {
    hn::Vec<U64> sum;

    static HWY_INLINE SumOfWhole zero() { return {hn::Zero(U64())}; }
    HWY_INLINE void add(hn::Vec<U32> y, std::size_t first) {
        const U64 d;
        const auto pair = hn::BitCast(d, y);
        add_times(hn::And(pair, hn::Set(d, 0xffffffffU)), factors.whole + first);
        add_times(hn::ShiftRight<32>(pair), factors.whole + first + half);
    }
    HWY_INLINE void add64(hn::Vec<U64> y, std::size_t first) { add_times(y, factors.whole64 + first); }
    HWY_INLINE void add_times(hn::Vec<U64> y, const std::uint64_t* by) {
        sum = hn::Add(sum, hn::Mul(y, hn::Load(U64(), by)));
    }
    HWY_INLINE std::uint64_t total() const { return sum_of_lanes(sum); }
};

using RowSum = std::conditional_t<multiplies_whole, SumOfWhole, SumOfHalves>;

/// Accumulators of a call; arrays of vectors that stay in registers where there are enough.
template <class Value>
struct Sums {
    static constexpr std::size_t count = partial_sums / half;
    hn::Vec<F64> sums[count];
    hn::Vec<F64> squares[count];
    hn::Vec<Value> min, max;
};

template <class Value>
HWY_INLINE void begin(const BlockSums& block, Sums<Value>& s) {
    for (std::size_t i = 0; i < s.count; ++i) {
        s.sums[i] = hn::LoadU(F64(), block.sums + i * half);
        s.squares[i] = hn::LoadU(F64(), block.squares + i * half);
    }
    using T = hn::TFromD<Value>;
    s.min =
        hn::Set(Value(), std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity());
    s.max =
        hn::Set(Value(), std::is_integral_v<T> ? std::numeric_limits<T>::min() : -std::numeric_limits<T>::infinity());
}

template <class Value>
HWY_INLINE void end(const Sums<Value>& s, BlockSums& block) {
    for (std::size_t i = 0; i < s.count; ++i) {
        hn::StoreU(s.sums[i], F64(), block.sums + i * half);
        hn::StoreU(s.squares[i], F64(), block.squares + i * half);
    }
    block.min = HWY_MIN(block.min, static_cast<double>(hn::GetLane(hn::MinOfLanes(Value(), s.min))));
    block.max = HWY_MAX(block.max, static_cast<double>(hn::GetLane(hn::MaxOfLanes(Value(), s.max))));
}

/// Takes what is not finite out of `value`, and counts it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V only_finite(V value, V& for_min, V& for_max, BlockSums& block) {
    const D d;
    const auto infinity = hn::Set(d, std::numeric_limits<hn::TFromD<D>>::infinity());
    const auto finite = hn::Lt(hn::Abs(value), infinity);
    if (!hn::AllTrue(d, finite)) {
        block.nans += hn::CountTrue(d, hn::IsNaN(value));
        block.positive_infs += hn::CountTrue(d, hn::Eq(value, infinity));
        block.negative_infs += hn::CountTrue(d, hn::Eq(value, hn::Neg(infinity)));
    }
    for_min = hn::IfThenElse(finite, value, infinity);
    for_max = hn::IfThenElse(finite, value, hn::Neg(infinity));
    return hn::IfThenElseZero(finite, value);
}

/// f16 as f32, exact: the exponent is put right by a product, which renormalises small ones.
HWY_INLINE hn::Vec<F32> half_values(hn::Vec<U32> bits) {
    const U32 u;
    const auto magnitude = hn::And(bits, hn::Set(u, 0x7fffU));
    const auto scaled = hn::Mul(hn::BitCast(F32(), hn::ShiftLeft<13>(magnitude)), hn::Set(F32(), 0x1p112F));
    const auto special = hn::BitCast(F32(), hn::ShiftLeft<13>(hn::Or(magnitude, hn::Set(u, 0x38000U))));
    const auto is_special = hn::Gt(hn::BitCast(I32(), magnitude), hn::Set(I32(), 0x7bff));
    const auto value = hn::IfThenElse(hn::RebindMask(F32(), is_special), special, scaled);
    return hn::Or(value, hn::BitCast(F32(), hn::ShiftLeft<16>(hn::AndNot(hn::Set(u, 0x7fffU), bits))));
}

template <DType type>
HWY_INLINE hn::Vec<U32> load_bits(const std::uint8_t* data, std::size_t at) {
    const U32 u;
    if constexpr (size_of(type) == 4) {
        return hn::BitCast(u, hn::LoadU(hn::Repartition<std::uint8_t, U32>(), data + at * 4));
    } else if constexpr (size_of(type) == 2) {
        const hn::Rebind<std::uint16_t, U32> d16;
        const hn::Repartition<std::uint8_t, decltype(d16)> bytes;
        return hn::PromoteTo(u, hn::BitCast(d16, hn::LoadU(bytes, data + at * 2)));
    } else {
        return hn::PromoteTo(u, hn::LoadU(hn::Rebind<std::uint8_t, U32>(), data + at));
    }
}

template <DType type>
using ValueTag = std::conditional_t<type == DType::i32, I32, std::conditional_t<type == DType::f64, F64, F32>>;

template <DType type>
HWY_INLINE hn::Vec<ValueTag<type>> values(hn::Vec<U32> bits) {
    if constexpr (type == DType::bf16) {
        return hn::BitCast(F32(), hn::ShiftLeft<16>(bits));
    } else if constexpr (type == DType::f16) {
        return half_values(bits);
    } else if constexpr (type == DType::i8) {
        return hn::ConvertTo(F32(), hn::ShiftRight<24>(hn::BitCast(I32(), hn::ShiftLeft<24>(bits))));
    } else {
        return hn::BitCast(ValueTag<type>(), bits);
    }
}

/// Four of eight, or two of four: one half of a vector's values, as doubles. Halves of memory need not be taken apart.
template <DType type, bool from_memory, std::size_t part, class V>
HWY_INLINE hn::Vec<F64> doubles(const std::uint8_t* data, std::size_t at, V value) {
    using D = hn::DFromV<V>;
    const hn::Half<D> d;
    if constexpr (from_memory) {
        const hn::Repartition<std::uint8_t, hn::Half<D>> bytes;
        return hn::PromoteTo(F64(), hn::BitCast(d, hn::LoadU(bytes, data + (at + part * half) * size_of(type))));
    } else if constexpr (part == 0) {
        return hn::PromoteTo(F64(), hn::LowerHalf(value));
    } else {
        return hn::PromoteTo(F64(), hn::UpperHalf(d, value));
    }
}

/// The keys of a row in the form the loops want them.
struct Turn {
    HWY_INLINE Turn(std::uint64_t key, unsigned groups, double* by_turn)
        : signs(key), far(lane_turn(key) & ~(near_turns - 1)),
          buckets(by_turn +
                  (lane_turn(key) % near_turns * groups + std::size_t{group_of(key, groups)}) * lanes_of_row) {}
    std::uint64_t signs;
    std::size_t far; // what of the turn exchanges whole eights of lanes
    double* buckets;
};

/// Negated where the top bit of `by` is set.
HWY_INLINE hn::Vec<F64> negated(hn::Vec<F64> value, hn::Vec<U64> by) {
    const auto top = hn::Set(U64(), 0x8000000000000000U);
#if HWY_TARGET == HWY_AVX3
    constexpr int first_xor_both = 0x78;
    return hn::BitCast(
        F64(), hn::Vec<U64>{_mm512_ternarylogic_epi64(hn::BitCast(U64(), value).raw, by.raw, top.raw, first_xor_both)});
#else
    return hn::Xor(value, hn::BitCast(F64(), hn::And(by, top)));
#endif
}

/// One half of a vector, or a whole one of doubles; `first`: lane of the row.
template <bool fused>
HWY_INLINE void add_doubles(hn::Vec<F64> value, std::size_t first, const Turn& turn, hn::Vec<F64>& sum,
                            hn::Vec<F64>& squares) {
    const U64 u;
    // As a product by 1: on Zen 5 products have units of their own, and those for sums have more to do (5 % of all).
    sum = hn::MulAdd(value, hn::Set(F64(), 1.0), sum);
    squares = fused ? hn::MulAdd(value, value, squares) : hn::Add(squares, hn::Mul(value, value));
    const auto shifted = hn::Set(u, turn.signs) << hn::Load(u, factors.shift + first);
    double* const to = turn.buckets + (first ^ turn.far);
    hn::StoreU(hn::Add(hn::LoadU(F64(), to), negated(value, shifted)), F64(), to);
}

template <DType type, bool careful, std::size_t v>
HWY_INLINE void add_vector(const std::uint8_t* data, std::size_t at, const Turn& turn, Sums<ValueTag<type>>& s,
                           RowSum& row, BlockSums& block) {
    constexpr std::size_t first = v * wide; // lane of the row
    const auto bits = load_bits<type>(data, at + first);
    row.add(bits, first);
    auto value = values<type>(bits);
    auto for_min = value, for_max = value;
    if constexpr (careful && type != DType::i32) {
        value = only_finite<F32>(value, for_min, for_max, block);
    }
    s.min = hn::Min(s.min, for_min);
    s.max = hn::Max(s.max, for_max);
    constexpr std::size_t i = first % partial_sums / half;
    constexpr bool from_memory = !careful && size_of(type) == 4;
    // Squares of an i32 round: no fused product there, which not every instruction set has. The others are exact.
    constexpr bool fused = type != DType::i32;
    add_doubles<fused>(doubles<type, from_memory, 0>(data, at + first, value), first, turn, s.sums[i], s.squares[i]);
    add_doubles<fused>(doubles<type, from_memory, 1>(data, at + first, value), first + half, turn, s.sums[i + 1],
                       s.squares[i + 1]);
}

template <bool careful, std::size_t v>
HWY_INLINE void add_vector64(const std::uint8_t* data, std::size_t at, const Turn& turn, Sums<F64>& s, RowSum& row,
                             BlockSums& block) {
    constexpr std::size_t first = v * half;
    const auto bits =
        hn::BitCast(U64(), hn::LoadU(hn::Repartition<std::uint8_t, U64>(), data + (at + first) * sizeof(double)));
    row.add64(hn::Xor(bits, hn::ShiftRight<32>(bits)), first);
    auto value = hn::BitCast(F64(), bits);
    auto for_min = value, for_max = value;
    if constexpr (careful) {
        value = only_finite<F64>(value, for_min, for_max, block);
    }
    s.min = hn::Min(s.min, for_min);
    s.max = hn::Max(s.max, for_max);
    constexpr std::size_t i = first % partial_sums / half;
    add_doubles<false>(value, first, turn, s.sums[i], s.squares[i]);
}

template <DType type, bool careful, std::size_t... v>
HWY_INLINE void add_rows_of(const std::uint8_t* data, std::size_t rows, std::uint64_t first_row, unsigned groups,
                            BlockSums& block, std::index_sequence<v...>) {
    Sums<ValueTag<type>> s;
    begin(block, s);
    for (std::size_t r = 0; r < rows; ++r) {
        const std::uint64_t key = row_key(first_row + r);
        const Turn turn(key, groups, block.by_turn);
        for (std::size_t byte = 0; byte < lanes_of_row * size_of(type); byte += bytes_of_line) {
            hwy::Prefetch(data + r * lanes_of_row * size_of(type) + byte + bytes_ahead); // of nothing: no harm
        }
        RowSum row = RowSum::zero();
        if constexpr (type == DType::f64) {
            (add_vector64<careful, v>(data, r * lanes_of_row, turn, s, row, block), ...);
        } else {
            (add_vector<type, careful, v>(data, r * lanes_of_row, turn, s, row, block), ...);
        }
        block.hash += row_hash(row.total(), key);
    }
    end(s, block);
}

template <DType type, bool careful>
void add_rows(const void* data, std::size_t rows, std::uint64_t first_row, unsigned groups, BlockSums& block) {
    constexpr std::size_t lanes = type == DType::f64 ? half : wide;
    add_rows_of<type, careful>(static_cast<const std::uint8_t*>(data), rows, first_row, groups, block,
                               std::make_index_sequence<lanes_of_row / lanes>());
}

/// Buckets first..first + half - 1: what turn `near` brought to them.
template <std::size_t near>
HWY_INLINE hn::Vec<F64> brought(const double* by_turn, std::size_t first) {
    const U64 u;
    constexpr std::size_t within = near & (half - 1); // what of the turn moves lanes of one vector
    const auto index = hn::IndicesFromVec(F64(), hn::Xor(hn::Iota(u, 0), hn::Set(u, within)));
    return hn::TableLookupLanes(hn::LoadU(F64(), by_turn + (first ^ (near - within))), index);
}

template <std::size_t... near>
HWY_INLINE void close_turns(unsigned groups, BlockSums& block, std::index_sequence<near...>) {
    const std::size_t buckets = std::size_t{groups} * lanes_of_row;
    for (std::size_t first = 0; first < buckets; first += half) {
        auto sum = hn::Zero(F64());
        ((sum = hn::Add(sum, brought<near>(block.by_turn + near * buckets, first))), ...);
        hn::Store(sum, F64(), block.sketch + first);
    }
}

void close(unsigned groups, BlockSums& block) { close_turns(groups, block, std::make_index_sequence<near_turns>()); }

} // namespace
} // namespace plumb::fingerprint::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#include "fingerprint/scans_vector-inl.hpp"
#endif
#endif
