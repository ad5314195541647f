// SPDX-License-Identifier: Apache-2.0
// Tags that say how much a scope or step does: plumb::bytes(n), plumb::flops(n), plumb::tokens(n), … in any order and
// any arithmetic type. Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "plumb/layout.hpp"

namespace plumb {
inline namespace v1 {

/// Work of one scope; NaN where a quantity was not given.
struct Work {
    double bytes;
    double flops;
    double elements;
    double bytes_per_kv;
};

template <WorkQuantity Quantity>
struct WorkTag {
    double value;
};

template <StepValue Value>
struct StepTag {
    std::uint64_t value;
};
struct TokensTag {
    std::uint64_t value;
};

template <class T>
using IfArithmetic = std::enable_if_t<std::is_arithmetic_v<T>, int>;

/// Bytes moved by the scope, read and written.
template <class T, IfArithmetic<T> = 0>
constexpr WorkTag<WorkQuantity::bytes> bytes(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Floating-point operations (a multiply-add counts 2).
template <class T, IfArithmetic<T> = 0>
constexpr WorkTag<WorkQuantity::flops> flops(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Elements written.
template <class T, IfArithmetic<T> = 0>
constexpr WorkTag<WorkQuantity::elements> elements(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Bytes per position of the kv cache: times the step's kv_length, added to bytes when the step is resolved.
template <class T, IfArithmetic<T> = 0>
constexpr WorkTag<WorkQuantity::bytes_per_kv> bytes_per_kv(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Tokens of a step: prefill tokens in Phase::prefill, decode tokens otherwise.
template <class T, IfArithmetic<T> = 0>
constexpr TokensTag tokens(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
template <class T, IfArithmetic<T> = 0>
constexpr StepTag<StepValue::prefill_tokens> prefill_tokens(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
template <class T, IfArithmetic<T> = 0>
constexpr StepTag<StepValue::decode_tokens> decode_tokens(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
/// Sequences in the batch of this step.
template <class T, IfArithmetic<T> = 0>
constexpr StepTag<StepValue::sequences> sequences(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
/// Positions in the kv cache that attention of this step reads.
template <class T, IfArithmetic<T> = 0>
constexpr StepTag<StepValue::kv_length> kv_length(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}

template <WorkQuantity Quantity>
constexpr void apply(Work& work, WorkTag<Quantity> tag) noexcept {
    if constexpr (Quantity == WorkQuantity::bytes) {
        work.bytes = tag.value;
    } else if constexpr (Quantity == WorkQuantity::flops) {
        work.flops = tag.value;
    } else if constexpr (Quantity == WorkQuantity::elements) {
        work.elements = tag.value;
    } else {
        work.bytes_per_kv = tag.value;
    }
}
/// All quantities at once.
constexpr void apply(Work& work, const Work& all) noexcept { work = all; }

/// The same bits: two absent quantities are the same.
inline bool same(double a, double b) noexcept {
    std::uint64_t x = 0;
    std::uint64_t y = 0;
    std::memcpy(&x, &a, sizeof x);
    std::memcpy(&y, &b, sizeof y);
    return x == y;
}
inline bool same(const Work& a, const Work& b) noexcept {
    return same(a.bytes, b.bytes) && same(a.flops, b.flops) && same(a.elements, b.elements) &&
           same(a.bytes_per_kv, b.bytes_per_kv);
}

template <class... Tags>
constexpr Work make_work(Tags... tags) noexcept {
    constexpr double absent = std::numeric_limits<double>::quiet_NaN();
    Work work{absent, absent, absent, absent};
    (apply(work, tags), ...);
    return work;
}

/// What a step declares about itself; 0 where it was not given.
struct StepValues {
    std::uint64_t prefill_tokens = 0, decode_tokens = 0, sequences = 0, kv_length = 0;
};

} // namespace v1
} // namespace plumb
