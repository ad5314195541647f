// SPDX-License-Identifier: Apache-2.0
// PLUMB_TENSOR: fingerprints of the tensors between bricks, kept in the recording, so that two runs can be compared
// (plumb diverge). Off, a macro costs one relaxed load; its arguments are not evaluated. `tensors=` in the spec says which
// tensors are looked at.
// Thread rule: as for every recording call, from any thread. On a device queue the tensor is read by the device, in the
// queue's order: it must not be freed before the queue has come past the call.
#pragma once

#include <cstdint>

#include "plumb/fingerprint.hpp"
#include "plumb/record.hpp"

namespace plumb {

inline namespace v1 {
namespace detail {

/// What a tensor is to its brick. Values are part of the file format.
enum class TensorRole : std::uint8_t { output = 0, input = 1 };

/// Where a tensor belongs, beyond the step and layer of the calling thread.
struct TensorTags {
    std::int64_t position =
        -1; // of its first row in the sequence; -1: that of the step (its kv_length less its tokens)
    std::uint32_t sequence = 0; // of a batch
    bool logits = false;        // the last row is logits: keep its largest value's index, and the margin to the second
};
struct PositionTag {
    std::int64_t value;
};
struct LogitsTag {};

} // namespace detail
} // namespace v1

/// Position in its sequence of a tensor's first row.
constexpr detail::PositionTag position(std::int64_t of_first_row) noexcept { return {of_first_row}; }
/// The tensor's last row is logits.
inline constexpr detail::LogitsTag logits{};

inline namespace v1 {
namespace detail {

constexpr void apply_tensor_tag(TensorTags& tags, PositionTag tag) noexcept { tags.position = tag.value; }
constexpr void apply_tensor_tag(TensorTags& tags, SequenceTag tag) noexcept {
    tags.sequence = static_cast<std::uint32_t>(tag.value);
}
constexpr void apply_tensor_tag(TensorTags& tags, LogitsTag) noexcept { tags.logits = true; }

/// A name, a brick, or text, which is interned.
struct TensorName {
    Name name;
    TensorName(Name given) noexcept : name(given) {}  // NOLINT: implicit, for the macros
    TensorName(Brick given) noexcept : name(given) {} // NOLINT
    PLUMB_API TensorName(const char* text) noexcept;  // NOLINT
};

PLUMB_API void take_tensor(Recorder& recorder, Queue queue, TensorName what, TensorRole role, const Tensor& tensor,
                           const TensorTags& tags) noexcept;

template <class... Tags>
void look_at(Recorder& recorder, TensorRole role, Queue queue, TensorName what, const Tensor& tensor,
             Tags... tags) noexcept {
    TensorTags all;
    (apply_tensor_tag(all, tags), ...);
    take_tensor(recorder, queue, what, role, tensor, all);
}

} // namespace detail
} // namespace v1
} // namespace plumb

#if defined(PLUMB_DISABLE)

#define PLUMB_TENSOR_AS(role, prof, ...) \
    ((void)sizeof((::plumb::detail::look_at((prof), ::plumb::detail::TensorRole::role, __VA_ARGS__), 0)))

#else

#define PLUMB_TENSOR_AS(role, prof, ...)                                                      \
    do {                                                                                      \
        if (PLUMB_UNLIKELY(((prof).mode() & ::plumb::detail::mode_tensors) != 0)) {           \
            ::plumb::detail::look_at((prof), ::plumb::detail::TensorRole::role, __VA_ARGS__); \
        }                                                                                     \
    } while (false)

#endif

/// PLUMB_TENSOR(prof, queue, what, tensor, tags…): the tensor that brick `what` just wrote. Put it behind the brick's
/// block, so that the time of looking at it is not the brick's.
#define PLUMB_TENSOR(prof, ...) PLUMB_TENSOR_AS(output, prof, __VA_ARGS__)
/// PLUMB_TENSOR_INPUT(prof, queue, what, tensor, tags…): a tensor that brick `what` is about to read.
#define PLUMB_TENSOR_INPUT(prof, ...) PLUMB_TENSOR_AS(input, prof, __VA_ARGS__)

// The names of version 0.1, which the next version leaves out: write PLUMB_TENSOR and PLUMB_TENSOR_INPUT.
#define PLUMB_CHECK PLUMB_TENSOR
#define PLUMB_CHECK_INPUT PLUMB_TENSOR_INPUT
