// SPDX-License-Identifier: Apache-2.0
// How each type of matrix is stored, as vectors: Format::each(d, blocks, f) calls f(row, index, quarter, values) for all
// values of a block of each of some rows; `row` and `quarter` (0 to 3) are constants, and tell sums apart that need not wait
// for each other. Types without blocks say how one value is read: one(), in `single` bytes. Types whose blocks have one
// scale give it by itself, scale_of(), and the values before they are multiplied by it, each_unscaled().
// Compiled once per instruction set by packed.cpp; pure functions.
#if defined(PLUMB_PACKED_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_PACKED_BLOCKS_INL
#undef PLUMB_PACKED_BLOCKS_INL
#else
#define PLUMB_PACKED_BLOCKS_INL
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

HWY_BEFORE_NAMESPACE();
namespace plumb::decoder::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// No wider than the smallest run of values that share a scale.
using Lanes = hn::CappedTag<float, 16>;

// A lambda that a loop of a product calls; by itself the compiler makes functions of some, and keeps their sums in memory.
#define PLUMB_INLINE __attribute__((always_inline))

template <std::size_t I>
using Index = std::integral_constant<std::size_t, I>;

template <class F, std::size_t... I>
HWY_INLINE void for_each_of(F&& f, std::index_sequence<I...>) {
    (f(Index<I>()), ...);
}
/// f(Index<0>()) to f(Index<N - 1>()): what is indexed by them stays in registers.
template <std::size_t N, class F>
HWY_INLINE void for_each_index(F&& f) {
    for_each_of(std::forward<F>(f), std::make_index_sequence<N>());
}

/// The same block of N rows, which lie `distance` bytes apart.
template <std::size_t N>
struct RowBlocks {
    const std::uint8_t* first;
    std::size_t distance;
    [[nodiscard]] HWY_INLINE const std::uint8_t* of(std::size_t row) const { return first + row * distance; }
};

HWY_INLINE float half_at(const std::uint8_t* at) {
    const hn::CappedTag<float, 1> d;
    const hn::Rebind<std::uint16_t, decltype(d)> bits;
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    std::uint16_t value;
    std::memcpy(&value, at, 2);
    return hn::GetLane(hn::PromoteTo(d, hn::BitCast(half, hn::Set(bits, value))));
}

template <class D>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> bytes_at(D, const std::uint8_t* at) {
    const hn::RebindToSigned<D> wide;
    return hn::PromoteTo(wide, hn::LoadU(hn::Rebind<std::uint8_t, D>(), at));
}

/// Format::load() of all values of a block, as runs of 16: the first vector of each run, of each row, then the next.
template <class Format, std::size_t N, class D, class F>
HWY_INLINE void load_each(D d, const RowBlocks<N>& blocks, F&& f) {
    constexpr std::size_t lanes = hn::MaxLanes(d);
    const auto load_vectors = [&](auto i) HWY_ATTR PLUMB_INLINE {
        for_each_index<Format::block / 16>([&](auto run) HWY_ATTR PLUMB_INLINE {
            for_each_index<N>([&](auto row) HWY_ATTR PLUMB_INLINE {
                f(row, 16 * run + i, run, Format::load(d, blocks.of(row), 16 * run + i));
            });
        });
    };
    if constexpr (lanes >= 8) {
        for_each_index<16 / lanes>([&](auto vector) HWY_ATTR PLUMB_INLINE { load_vectors(Index<vector * lanes>()); });
    } else {
        for (std::size_t i = 0; i < 16; i += lanes) {
            load_vectors(i);
        }
    }
}

/// Format::each_of(d, block, f), one row after the other.
template <class Format, std::size_t N, class D, class F>
HWY_INLINE void each_in_turn(D d, const RowBlocks<N>& blocks, F&& f) {
    for_each_index<N>([&](auto row) HWY_ATTR PLUMB_INLINE {
        Format::each_of(d, blocks.of(row), [&](std::size_t i, auto quarter, hn::Vec<D> v) HWY_ATTR PLUMB_INLINE {
            f(row, i, quarter, v);
        });
    });
}

struct F32 {
    static constexpr std::size_t block = 64, bytes = 256, single = 4;
    /// Files align tensors to 32 bytes: wider loads would cross cache lines, and read a quarter slower than memory gives.
    template <class D>
    static HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from, std::size_t i) {
        const float* at = reinterpret_cast<const float*>(from) + i;
#if HWY_CAP_GE512
        const hn::Half<D> half;
        return hn::Combine(d, hn::LoadU(half, at + 8), hn::LoadU(half, at));
#else
        return hn::LoadU(d, at);
#endif
    }
    static HWY_INLINE float one(const std::uint8_t* at) {
        float value;
        std::memcpy(&value, at, 4);
        return value;
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each(D d, const RowBlocks<N>& blocks, F&& f) {
        load_each<F32>(d, blocks, f);
    }
};

struct Bfloat {
    static constexpr std::size_t block = 64, bytes = 128, single = 2;
    static HWY_INLINE float one(const std::uint8_t* at) {
        const std::uint8_t whole[4] = {0, 0, at[0], at[1]};
        float value;
        std::memcpy(&value, whole, 4);
        return value;
    }
    template <class D>
    static HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from, std::size_t i) {
        const hn::RebindToUnsigned<D> bits;
        const hn::Rebind<std::uint16_t, D> narrow;
        const auto upper = hn::LoadU(narrow, reinterpret_cast<const std::uint16_t*>(from) + i);
        return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(bits, upper)));
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each(D d, const RowBlocks<N>& blocks, F&& f) {
        load_each<Bfloat>(d, blocks, f);
    }
};

struct Half {
    static constexpr std::size_t block = 64, bytes = 128, single = 2;
    static HWY_INLINE float one(const std::uint8_t* at) { return half_at(at); }
    template <class D>
    static HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from, std::size_t i) {
        const hn::Rebind<std::uint16_t, D> bits;
        const hn::Rebind<hwy::float16_t, D> half;
        return hn::PromoteTo(d, hn::BitCast(half, hn::LoadU(bits, reinterpret_cast<const std::uint16_t*>(from) + i)));
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each(D d, const RowBlocks<N>& blocks, F&& f) {
        load_each<Half>(d, blocks, f);
    }
};

template <class Format, std::size_t N, class D, class F>
HWY_INLINE void each_scaled(D d, const RowBlocks<N>& blocks, F&& f) {
    hn::Vec<D> scales[N];
    for_each_index<N>([&](auto row) HWY_ATTR PLUMB_INLINE { scales[row] = Format::scale_of(d, blocks.of(row)); });
    Format::each_unscaled(d, blocks,
                          [&](auto row, std::size_t i, auto quarter, hn::Vec<D> values)
                              HWY_ATTR PLUMB_INLINE { f(row, i, quarter, hn::Mul(scales[row], values)); });
}

/// A half, then 32 signed bytes: value = scale * byte.
struct Q80 {
    static constexpr std::size_t block = 32, bytes = 34, single = 0;
    template <class D>
    static HWY_INLINE hn::Vec<D> load(D d, const std::uint8_t* from, std::size_t i) {
        const hn::Rebind<std::int8_t, D> narrow;
        const hn::RebindToSigned<D> wide;
        const auto* at = reinterpret_cast<const std::int8_t*>(from) + 2 + i;
        return hn::ConvertTo(d, hn::PromoteTo(wide, hn::LoadU(narrow, at)));
    }
    template <class D>
    static HWY_INLINE hn::Vec<D> scale_of(D d, const std::uint8_t* from) {
        return hn::Set(d, half_at(from));
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each_unscaled(D d, const RowBlocks<N>& blocks, F&& f) {
        load_each<Q80>(d, blocks, f);
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each(D d, const RowBlocks<N>& blocks, F&& f) {
        each_scaled<Q80>(d, blocks, f);
    }
};

/// A half, then 16 bytes: value i in the lower half of byte i, value i + 16 in the upper; value = scale * (q - 8).
struct Q40 {
    static constexpr std::size_t block = 32, bytes = 18, single = 0;
    template <class D>
    static HWY_INLINE hn::Vec<D> scale_of(D d, const std::uint8_t* from) {
        return hn::Set(d, half_at(from));
    }
    template <class D, class F>
    static HWY_INLINE void each_of(D d, const std::uint8_t* at, F&& f) {
        const hn::RebindToSigned<D> wide;
        const auto middle = hn::Set(wide, 8);
        for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
            const auto both = bytes_at(d, at + 2 + i);
            f(i, Index<0>(), hn::ConvertTo(d, hn::Sub(hn::And(both, hn::Set(wide, 15)), middle)));
            f(i + 16, Index<1>(), hn::ConvertTo(d, hn::Sub(hn::ShiftRight<4>(both), middle)));
        }
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each_unscaled(D d, const RowBlocks<N>& blocks, F&& f) {
        each_in_turn<Q40>(d, blocks, f);
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each(D d, const RowBlocks<N>& blocks, F&& f) {
        each_scaled<Q40>(d, blocks, f);
    }
};

/// Halves d and dmin, eight pairs of 6 bits (scale, least) in 12 bytes, then four times 32 bytes whose lower halves are one
/// run of 32 values and whose upper halves the next: value = d * scale * q - dmin * least.
struct Q4K {
    static constexpr std::size_t block = 256, bytes = 144, single = 0;
    struct Pair {
        int scale, least;
    };
    static HWY_INLINE Pair pair_of(const std::uint8_t* at, std::size_t run) {
        if (run < 4) {
            return {at[run] & 63, at[run + 4] & 63};
        }
        return {(at[run + 4] & 15) | (at[run - 4] >> 6 << 4), (at[run + 4] >> 4) | (at[run] >> 6 << 4)};
    }
    template <class D, class F>
    static HWY_INLINE void each_of(D d, const std::uint8_t* at, F&& f) {
        const hn::RebindToSigned<D> wide;
        const float scale = half_at(at);
        const float least = half_at(at + 2);
        for (std::size_t run = 0; run < 8; run += 2) {
            const Pair first = pair_of(at + 4, run);
            const Pair second = pair_of(at + 4, run + 1);
            const auto scale0 = hn::Set(d, scale * static_cast<float>(first.scale));
            const auto scale1 = hn::Set(d, scale * static_cast<float>(second.scale));
            const auto least0 = hn::Set(d, least * static_cast<float>(first.least));
            const auto least1 = hn::Set(d, least * static_cast<float>(second.least));
            const std::uint8_t* values = at + 16 + 16 * run;
            const auto part = [&](std::size_t i, auto low, auto high) HWY_ATTR {
                const auto both = bytes_at(d, values + i);
                f(32 * run + i, low, hn::MulSub(scale0, hn::ConvertTo(d, hn::And(both, hn::Set(wide, 15))), least0));
                f(32 * run + 32 + i, high, hn::MulSub(scale1, hn::ConvertTo(d, hn::ShiftRight<4>(both)), least1));
            };
            for (std::size_t i = 0; i < 16; i += hn::Lanes(d)) {
                part(i, Index<0>(), Index<1>());
                part(i + 16, Index<2>(), Index<3>());
            }
        }
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each(D d, const RowBlocks<N>& blocks, F&& f) {
        each_in_turn<Q4K>(d, blocks, f);
    }
};

/// 128 bytes of lower 4 bits, 64 of upper 2 bits, 16 signed scales of 16 values each, a half d: value = d * scale * (q - 32).
/// Each half of the block: byte i of 64 holds the lower bits of values i (i < 64) and i + 64; byte i of 32 holds the upper
/// bits of values i, i + 32, i + 64 and i + 96.
struct Q6K {
    static constexpr std::size_t block = 256, bytes = 210, single = 0;
    template <class D, class F>
    static HWY_INLINE void each_of(D d, const std::uint8_t* at, F&& f) {
        const hn::RebindToSigned<D> wide;
        const float scale = half_at(at + 208);
        const auto low4 = hn::Set(wide, 15);
        const auto high2 = hn::Set(wide, 0x30);
        const auto middle = hn::Set(wide, 32);
        for (std::size_t half = 0; half < 2; ++half) {
            const std::uint8_t* lower = at + 64 * half;
            const std::uint8_t* upper = at + 128 + 32 * half;
            const std::uint8_t* scales = at + 192 + 8 * half;
            for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
                const auto bits = bytes_at(d, upper + i);
                const auto a = bytes_at(d, lower + i);
                const auto b = bytes_at(d, lower + 32 + i);
                const auto give = [&](std::size_t run, auto quarter, auto value) HWY_ATTR {
                    const auto by = static_cast<std::int8_t>(scales[2 * run + i / 16]);
                    f(128 * half + 32 * run + i, quarter,
                      hn::Mul(hn::Set(d, scale * static_cast<float>(by)), hn::ConvertTo(d, hn::Sub(value, middle))));
                };
                give(0, Index<0>(), hn::Or(hn::And(a, low4), hn::And(hn::ShiftLeft<4>(bits), high2)));
                give(1, Index<1>(), hn::Or(hn::And(b, low4), hn::And(hn::ShiftLeft<2>(bits), high2)));
                give(2, Index<2>(), hn::Or(hn::ShiftRight<4>(a), hn::And(bits, high2)));
                give(3, Index<3>(), hn::Or(hn::ShiftRight<4>(b), hn::And(hn::ShiftRight<2>(bits), high2)));
            }
        }
    }
    template <std::size_t N, class D, class F>
    static HWY_INLINE void each(D d, const RowBlocks<N>& blocks, F&& f) {
        each_in_turn<Q6K>(d, blocks, f);
    }
};

} // namespace
} // namespace plumb::decoder::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
