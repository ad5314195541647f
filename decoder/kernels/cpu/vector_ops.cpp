// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/vector_ops.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

// Highway compiles what follows once per instruction set, by including this very file again. Not for SSSE3, which processors have
// without SSE4 only if they are older than 2008: those run the scalar code.
#define HWY_DISABLED_TARGETS HWY_SSSE3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "decoder/kernels/cpu/vector_ops.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, as Highway wants it.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace plumb::decoder::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

/// body(tag, index) for whole vectors, then for single values.
template <class Body>
HWY_INLINE void sweep(std::size_t n, Body&& body) {
    const Full full;
    const One one;
    std::size_t i = 0;
    for (; i + hn::Lanes(full) <= n; i += hn::Lanes(full)) {
        body(full, i);
    }
    for (; i < n; ++i) {
        body(one, i);
    }
}

template <class D>
HWY_INLINE void store(D d, hn::Vec<D> v, float* out) {
    hn::StoreU(v, d, out);
}

/// Rounds to nearest even; a NaN stays one (its payload could round to infinity).
template <class D>
HWY_INLINE void store(D, hn::Vec<D> v, Bf16* out) {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const hn::Rebind<Bf16, D> d16;
    const auto bits = hn::BitCast(du, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1U));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7fffU))));
    const auto nan = hn::RebindMask(du, hn::IsNaN(v));
    const auto upper = hn::IfThenElse(nan, hn::Set(du, 0x7fc0U), rounded);
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, upper)), d16, out);
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const Bf16* in) {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<Bf16, D> d16;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, in))));
}

template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* in) {
    return hn::LoadU(d, in);
}

/// Sum of a[i]*b[i]; four sums in flight hide the latency of the multiply-add.
template <class A>
HWY_INLINE float dot_product(const A* a, const float* b, std::size_t n) {
    const Full d;
    const std::size_t lanes = hn::Lanes(d);
    auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
    std::size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
        s0 = hn::MulAdd(load(d, a + i), hn::LoadU(d, b + i), s0);
        s1 = hn::MulAdd(load(d, a + i + lanes), hn::LoadU(d, b + i + lanes), s1);
        s2 = hn::MulAdd(load(d, a + i + 2 * lanes), hn::LoadU(d, b + i + 2 * lanes), s2);
        s3 = hn::MulAdd(load(d, a + i + 3 * lanes), hn::LoadU(d, b + i + 3 * lanes), s3);
    }
    for (; i + lanes <= n; i += lanes) {
        s0 = hn::MulAdd(load(d, a + i), hn::LoadU(d, b + i), s0);
    }
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
    const One one;
    for (; i < n; ++i) {
        sum += hn::GetLane(load(one, a + i)) * b[i];
    }
    return sum;
}

template <class Out>
HWY_INLINE void copy_as(const float* in, std::size_t n, Out* out) {
    sweep(n, [&](auto d, std::size_t i) HWY_ATTR { store(d, hn::LoadU(d, in + i), out + i); });
}

void narrow(const float* in, std::size_t n, Bf16* out) { copy_as(in, n, out); }

void widen(const Bf16* in, std::size_t n, float* out) {
    sweep(n, [&](auto d, std::size_t i) HWY_ATTR { store(d, load(d, in + i), out + i); });
}

template <class Out>
HWY_INLINE void norm(const float* in, const float* weight, float epsilon, std::size_t n, Out* out) {
    const float mean = dot_product(in, in, n) / static_cast<float>(n);
    const float scale = 1.0F / std::sqrt(mean + epsilon);
    sweep(n, [&](auto d, std::size_t i) HWY_ATTR {
        const auto scaled = hn::Mul(hn::LoadU(d, in + i), hn::Set(d, scale));
        store(d, hn::Mul(scaled, hn::LoadU(d, weight + i)), out + i);
    });
}

void norm_f32(const float* in, const float* weight, float epsilon, std::size_t n, float* out) {
    norm(in, weight, epsilon, n, out);
}
void norm_bf16(const float* in, const float* weight, float epsilon, std::size_t n, Bf16* out) {
    norm(in, weight, epsilon, n, out);
}

/// 1 + exp(x). Highway's exp is one up to 104 only; the quotients below are 0 in float long before.
template <class D>
HWY_INLINE hn::Vec<D> one_and_exp(D d, hn::Vec<D> x) {
    return hn::Add(hn::Set(d, 1.0F), hn::Exp(d, hn::Min(x, hn::Set(d, 88.0F))));
}

template <class Out>
HWY_INLINE void silu(const float* gate, const float* up, std::size_t n, Out* out) {
    sweep(n, [&](auto d, std::size_t i) HWY_ATTR {
        const auto g = hn::LoadU(d, gate + i);
        const auto denominator = one_and_exp(d, hn::Neg(g));
        store(d, hn::Mul(hn::Div(g, denominator), hn::LoadU(d, up + i)), out + i);
    });
}

void silu_f32(const float* gate, const float* up, std::size_t n, float* out) { silu(gate, up, n, out); }
void silu_bf16(const float* gate, const float* up, std::size_t n, Bf16* out) { silu(gate, up, n, out); }

template <class Out>
HWY_INLINE void gelu(const float* gate, const float* up, std::size_t n, Out* out) {
    sweep(n, [&](auto d, std::size_t i) HWY_ATTR {
        const auto g = hn::LoadU(d, gate + i);
        const auto cubic = hn::MulAdd(hn::Mul(hn::Set(d, 0.044715F), g), hn::Mul(g, g), g);
        // x / 2 * (1 + tanh(y)) = x / (1 + exp(-2y)); 2 * sqrt(2 / pi) before it.
        const auto denominator = one_and_exp(d, hn::Mul(hn::Set(d, -1.5957691216057308F), cubic));
        store(d, hn::Mul(hn::Div(g, denominator), hn::LoadU(d, up + i)), out + i);
    });
}

void gelu_f32(const float* gate, const float* up, std::size_t n, float* out) { gelu(gate, up, n, out); }
void gelu_bf16(const float* gate, const float* up, std::size_t n, Bf16* out) { gelu(gate, up, n, out); }

void scale_row(float* x, float factor, std::size_t n) {
    sweep(n,
          [&](auto d, std::size_t i) HWY_ATTR { store(d, hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), x + i); });
}

void add_scaled_row(const float* x, float factor, std::size_t n, float* out) {
    sweep(n, [&](auto d, std::size_t i) HWY_ATTR {
        store(d, hn::MulAdd(hn::LoadU(d, x + i), hn::Set(d, factor), hn::LoadU(d, out + i)), out + i);
    });
}

void add_rows(float* x, const float* y, std::size_t n) {
    sweep(n,
          [&](auto d, std::size_t i) HWY_ATTR { store(d, hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), x + i); });
}

void turn_halves(float* head, const float* cosines, const float* sines, std::size_t pairs) {
    sweep(pairs, [&](auto d, std::size_t i) HWY_ATTR {
        const auto c = hn::LoadU(d, cosines + i);
        const auto s = hn::LoadU(d, sines + i);
        const auto a = hn::LoadU(d, head + i);
        const auto b = hn::LoadU(d, head + pairs + i);
        hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, head + i);
        hn::StoreU(hn::Add(hn::Mul(a, s), hn::Mul(b, c)), d, head + pairs + i);
    });
}

void turn_neighbours(float* head, const float* cosines, const float* sines, std::size_t pairs) {
    sweep(pairs, [&](auto d, std::size_t i) HWY_ATTR {
        hn::Vec<decltype(d)> a, b;
        hn::LoadInterleaved2(d, head + 2 * i, a, b);
        const auto c = hn::LoadU(d, cosines + i);
        const auto s = hn::LoadU(d, sines + i);
        hn::StoreInterleaved2(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), hn::Add(hn::Mul(a, s), hn::Mul(b, c)), d,
                              head + 2 * i);
    });
}

/// Of what is no NaN: what the processor's own maximum makes of one depends on the order, and forgets all before it.
HWY_INLINE float maximum(const float* values, std::size_t n) {
    const Full d;
    const std::size_t lanes = hn::Lanes(d);
    const auto least = hn::Set(d, -std::numeric_limits<float>::infinity());
    auto best = least;
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto v = hn::LoadU(d, values + i);
        best = hn::Max(best, hn::IfThenElse(hn::IsNaN(v), least, v));
    }
    float out = hn::GetLane(hn::MaxOfLanes(d, best));
    for (; i < n; ++i) {
        out = std::max(out, values[i]);
    }
    return out;
}

/// Turns scores into weights; returns 1 / their sum.
HWY_INLINE float exponentials(float* scores, std::size_t n) {
    const float top = maximum(scores, n);
    float sum = 0;
    sweep(n, [&](auto d, std::size_t i) HWY_ATTR {
        const auto e = hn::Exp(d, hn::Sub(hn::LoadU(d, scores + i), hn::Set(d, top)));
        hn::StoreU(e, d, scores + i);
        sum += hn::GetLane(hn::SumOfLanes(d, e));
    });
    return 1.0F / sum;
}

void score_head(const float* query, const float* keys, std::size_t positions, std::size_t size, float* scores) {
    const float scale = 1.0F / std::sqrt(static_cast<float>(size));
    for (std::size_t p = 0; p < positions; ++p) {
        scores[p] = dot_product(query, keys + p * size, size) * scale;
    }
}

float weigh_head(float* scores, std::size_t positions) { return exponentials(scores, positions); }

/// As attend_head() sums, which begins at 0.
void add_head(const float* weights, const float* values, std::size_t positions, std::size_t size, float* sums) {
    sweep(size, [&](auto d, std::size_t i) HWY_ATTR {
        auto sum = hn::LoadU(d, sums + i);
        for (std::size_t p = 0; p < positions; ++p) {
            sum = hn::MulAdd(hn::Set(d, weights[p]), hn::LoadU(d, values + p * size + i), sum);
        }
        hn::StoreU(sum, d, sums + i);
    });
}

void attend_head(const float* query, const float* keys, const float* values, std::size_t positions, std::size_t size,
                 float* scores, float* out) {
    const float scale = 1.0F / std::sqrt(static_cast<float>(size));
    for (std::size_t p = 0; p < positions; ++p) {
        scores[p] = dot_product(query, keys + p * size, size) * scale;
    }
    const float normal = exponentials(scores, positions);
    sweep(size, [&](auto d, std::size_t i) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::size_t p = 0; p < positions; ++p) {
            sum = hn::MulAdd(hn::Set(d, scores[p]), hn::LoadU(d, values + p * size + i), sum);
        }
        hn::StoreU(hn::Mul(sum, hn::Set(d, normal)), d, out + i);
    });
}

std::size_t index_of_largest(const float* values, std::size_t n) {
    const float top = maximum(values, n);
    const Full d;
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        if (!hn::AllFalse(d, hn::Eq(hn::LoadU(d, values + i), hn::Set(d, top)))) {
            break;
        }
    }
    for (; i < n; ++i) {
        if (values[i] == top) {
            return i;
        }
    }
    return 0;
}

} // namespace
} // namespace plumb::decoder::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::decoder::cpu {

HWY_EXPORT(narrow);
HWY_EXPORT(widen);
HWY_EXPORT(norm_f32);
HWY_EXPORT(norm_bf16);
HWY_EXPORT(silu_f32);
HWY_EXPORT(silu_bf16);
HWY_EXPORT(gelu_f32);
HWY_EXPORT(gelu_bf16);
HWY_EXPORT(scale_row);
HWY_EXPORT(add_scaled_row);
HWY_EXPORT(add_rows);
HWY_EXPORT(turn_halves);
HWY_EXPORT(turn_neighbours);
HWY_EXPORT(attend_head);
HWY_EXPORT(score_head);
HWY_EXPORT(weigh_head);
HWY_EXPORT(add_head);
HWY_EXPORT(index_of_largest);

void to_bf16(const float* in, std::size_t n, Bf16* out) noexcept { HWY_DYNAMIC_DISPATCH(narrow)(in, n, out); }
void from_bf16(const Bf16* in, std::size_t n, float* out) noexcept { HWY_DYNAMIC_DISPATCH(widen)(in, n, out); }

void rms_norm(const float* in, const float* weight, float epsilon, std::size_t n, float* out) noexcept {
    HWY_DYNAMIC_DISPATCH(norm_f32)(in, weight, epsilon, n, out);
}
void rms_norm(const float* in, const float* weight, float epsilon, std::size_t n, Bf16* out) noexcept {
    HWY_DYNAMIC_DISPATCH(norm_bf16)(in, weight, epsilon, n, out);
}
void silu_multiply(const float* gate, const float* up, std::size_t n, float* out) noexcept {
    HWY_DYNAMIC_DISPATCH(silu_f32)(gate, up, n, out);
}
void silu_multiply(const float* gate, const float* up, std::size_t n, Bf16* out) noexcept {
    HWY_DYNAMIC_DISPATCH(silu_bf16)(gate, up, n, out);
}
void gelu_multiply(const float* gate, const float* up, std::size_t n, float* out) noexcept {
    HWY_DYNAMIC_DISPATCH(gelu_f32)(gate, up, n, out);
}
void gelu_multiply(const float* gate, const float* up, std::size_t n, Bf16* out) noexcept {
    HWY_DYNAMIC_DISPATCH(gelu_bf16)(gate, up, n, out);
}
void scale(float* x, float factor, std::size_t n) noexcept { HWY_DYNAMIC_DISPATCH(scale_row)(x, factor, n); }
void add_scaled(const float* x, float factor, std::size_t n, float* out) noexcept {
    HWY_DYNAMIC_DISPATCH(add_scaled_row)(x, factor, n, out);
}
void add(float* x, const float* y, std::size_t n) noexcept { HWY_DYNAMIC_DISPATCH(add_rows)(x, y, n); }

void rotate_neighbours(float* head, const float* cosines, const float* sines, std::size_t pairs) noexcept {
    HWY_DYNAMIC_DISPATCH(turn_neighbours)(head, cosines, sines, pairs);
}
void rotate_halves(float* head, const float* cosines, const float* sines, std::size_t pairs) noexcept {
    HWY_DYNAMIC_DISPATCH(turn_halves)(head, cosines, sines, pairs);
}
void attend(const float* query, const float* keys, const float* values, std::size_t positions, std::size_t size,
            float* scores, float* out) noexcept {
    HWY_DYNAMIC_DISPATCH(attend_head)(query, keys, values, positions, size, scores, out);
}
void attention_scores(const float* query, const float* keys, std::size_t positions, std::size_t size,
                      float* scores) noexcept {
    HWY_DYNAMIC_DISPATCH(score_head)(query, keys, positions, size, scores);
}
float attention_weights(float* scores, std::size_t positions) noexcept {
    return HWY_DYNAMIC_DISPATCH(weigh_head)(scores, positions);
}
void add_weighted(const float* weights, const float* values, std::size_t positions, std::size_t size,
                  float* sums) noexcept {
    HWY_DYNAMIC_DISPATCH(add_head)(weights, values, positions, size, sums);
}
std::size_t largest(const float* values, std::size_t n) noexcept {
    return HWY_DYNAMIC_DISPATCH(index_of_largest)(values, n);
}

} // namespace plumb::decoder::cpu
#endif
