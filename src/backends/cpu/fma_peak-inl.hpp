// SPDX-License-Identifier: Apache-2.0
// The loop of fma_peak.hpp for one instruction set: compiled once for each by fma_peak.cpp, which owns it. Any thread.
#if defined(PLUMB_FMA_PEAK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_FMA_PEAK_INL
#undef PLUMB_FMA_PEAK_INL
#else
#define PLUMB_FMA_PEAK_INL
#endif

#include <hwy/highway.h>

#include <cstddef>

#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
HWY_BEFORE_NAMESPACE();
namespace plumb::backends::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Twelve chains: two units times a latency of four or five leave none waiting, and all fit 16 registers.
inline double multiply_adds(std::size_t rounds, float* sink) {
    const hn::ScalableTag<float> wide;
    const auto factor = hn::Set(wide, 0.5F);
    const auto addend = hn::Set(wide, 1.0F);
    // Chains that begin alike are one chain to a compiler, which does it once.
    const auto begin = [&](int chain) {
        return hn::Set(wide, *sink + static_cast<float>(chain));
    };
    auto a = begin(0), b = begin(1), c = begin(2), d = begin(3), e = begin(4), f = begin(5);
    auto g = begin(6), h = begin(7), i = begin(8), j = begin(9), k = begin(10), l = begin(11);
    for (std::size_t round = 0; round < rounds; ++round) {
        a = hn::MulAdd(a, factor, addend);
        b = hn::MulAdd(b, factor, addend);
        c = hn::MulAdd(c, factor, addend);
        d = hn::MulAdd(d, factor, addend);
        e = hn::MulAdd(e, factor, addend);
        f = hn::MulAdd(f, factor, addend);
        g = hn::MulAdd(g, factor, addend);
        h = hn::MulAdd(h, factor, addend);
        i = hn::MulAdd(i, factor, addend);
        j = hn::MulAdd(j, factor, addend);
        k = hn::MulAdd(k, factor, addend);
        l = hn::MulAdd(l, factor, addend);
    }
    a = hn::Add(hn::Add(a, b), hn::Add(c, d));
    e = hn::Add(hn::Add(e, f), hn::Add(g, h));
    i = hn::Add(hn::Add(i, j), hn::Add(k, l));
    *sink = hn::GetLane(hn::Add(hn::Add(a, e), i));
    return 2.0 * 12.0 * static_cast<double>(hn::Lanes(wide)) * static_cast<double>(rounds);
}

} // namespace plumb::backends::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif
