// SPDX-License-Identifier: Apache-2.0
// Tags that say how much a scope or step does: plumb::bytes(n), plumb::flops(n), plumb::tokens(n), … in any order and
// any arithmetic type. Plain values; no thread rule.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plumb/api.hpp"
#include "plumb/bricks.hpp"
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

namespace detail {

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

/// Which collective of its group a scope is.
struct Collective {
    std::uint64_t sequence_plus_one = 0; // 0: not said
    std::uint16_t group = 0;             // its name; 0: not said
};
struct GroupTag {
    Name value;
};
struct SequenceTag {
    std::uint64_t value;
};
template <class Tag>
inline constexpr bool says_collective = std::is_same_v<Tag, GroupTag> || std::is_same_v<Tag, SequenceTag>;
template <class... Tags>
inline constexpr bool any_collective = (false || ... || says_collective<Tags>);
template <class Tag>
inline constexpr bool says_work = !says_collective<Tag>;
template <class... Tags>
inline constexpr bool any_work = (false || ... || says_work<Tags>);

template <class T>
using IfArithmetic = std::enable_if_t<std::is_arithmetic_v<T>, int>;

/// What a step declares about itself; 0 where it was not given.
struct StepValues {
    std::uint64_t prefill_tokens = 0, decode_tokens = 0, sequences = 0, kv_length = 0;
};

} // namespace detail

/// Bytes moved by the scope, read and written.
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::WorkTag<detail::WorkQuantity::bytes> bytes(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Floating-point operations (a multiply-add counts 2).
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::WorkTag<detail::WorkQuantity::flops> flops(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Elements written.
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::WorkTag<detail::WorkQuantity::elements> elements(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Bytes per position of the kv cache: times the step's kv_length, added to bytes when the step is resolved.
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::WorkTag<detail::WorkQuantity::bytes_per_kv> bytes_per_kv(T n) noexcept {
    return {static_cast<double>(n)};
}
/// Tokens of a step: prefill tokens in Phase::prefill, decode tokens otherwise.
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::TokensTag tokens(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::StepTag<detail::StepValue::prefill_tokens> prefill_tokens(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::StepTag<detail::StepValue::decode_tokens> decode_tokens(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
/// Sequences in the batch of this step.
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::StepTag<detail::StepValue::sequences> sequences(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}
/// Positions in the kv cache that attention of this step reads.
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::StepTag<detail::StepValue::kv_length> kv_length(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}

/// The group of ranks that a collective is of: a name from intern(), such as "tp".
constexpr detail::GroupTag group(Name name) noexcept { return {name}; }
/// Of a collective: its number among those of its brick and group, from 0, the same on every rank. Of a tensor
/// (PLUMB_TENSOR): which sequence of a batch it belongs to, from 0.
template <class T, detail::IfArithmetic<T> = 0>
constexpr detail::SequenceTag sequence(T n) noexcept {
    return {static_cast<std::uint64_t>(n)};
}

constexpr void apply(Work&, detail::GroupTag) noexcept {}
constexpr void apply(Work&, detail::SequenceTag) noexcept {}
template <detail::WorkQuantity Quantity>
constexpr void apply(Work& work, detail::WorkTag<Quantity> tag) noexcept {
    if constexpr (Quantity == detail::WorkQuantity::bytes) {
        work.bytes = tag.value;
    } else if constexpr (Quantity == detail::WorkQuantity::flops) {
        work.flops = tag.value;
    } else if constexpr (Quantity == detail::WorkQuantity::elements) {
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
    constexpr double absent = PLUMB_NAN;
    Work work{absent, absent, absent, absent};
    (apply(work, tags), ...);
    return work;
}

namespace detail {

constexpr void apply(Collective& of, GroupTag tag) noexcept { of.group = tag.value.id; }
constexpr void apply(Collective& of, SequenceTag tag) noexcept { of.sequence_plus_one = tag.value + 1; }
template <class Tag>
constexpr void apply(Collective&, Tag) noexcept {}

template <class... Tags>
constexpr Collective make_collective(Tags... tags) noexcept {
    Collective of;
    (apply(of, tags), ...);
    return of;
}

} // namespace detail
} // namespace v1
} // namespace plumb
