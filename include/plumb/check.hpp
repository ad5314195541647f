// SPDX-License-Identifier: Apache-2.0
// PLUMB_CHECK: fingerprints of the tensors between bricks, kept in the recording, so that two runs can be compared
// (plumb diverge). Off, a macro costs one relaxed load; its arguments are not evaluated.
// Thread rule: as for every recording call, from any thread. On a device queue the tensor is read by the device, in the
// queue's order: it must not be freed before the queue has come past the call.
#pragma once

#include <cstdint>

#include "plumb/fingerprint.hpp"
#include "plumb/record.hpp"

namespace plumb {

/// What a tensor is to its brick. Values are part of the file format.
enum class CheckRole : std::uint8_t { output = 0, input = 1 };

/// Where a tensor belongs, beyond the step and layer of the calling thread.
struct CheckPlace {
    std::int64_t position =
        -1; // of its first row in the sequence; -1: that of the step (its kv_length less its tokens)
    std::uint32_t sequence = 0; // of a batch
    bool logits = false;        // the last row is logits: keep its largest value's index, and the margin to the second
};
struct PositionTag {
    std::int64_t value;
};
struct SequenceTag {
    std::uint32_t value;
};
struct LogitsTag {};
/// Position in its sequence of a tensor's first row.
constexpr PositionTag position(std::int64_t of_first_row) noexcept { return {of_first_row}; }
/// Which sequence of a batch a tensor belongs to, from 0.
constexpr SequenceTag sequence(std::uint32_t index) noexcept { return {index}; }
/// The tensor's last row is logits.
inline constexpr LogitsTag logits{};

constexpr void apply_check_tag(CheckPlace& place, PositionTag tag) noexcept { place.position = tag.value; }
constexpr void apply_check_tag(CheckPlace& place, SequenceTag tag) noexcept { place.sequence = tag.value; }
constexpr void apply_check_tag(CheckPlace& place, LogitsTag) noexcept { place.logits = true; }

inline namespace v1 {

/// A name, a brick, or text, which is interned.
struct CheckName {
    Name name;
    CheckName(Name given) noexcept : name(given) {}  // NOLINT: implicit, for the macros
    CheckName(Brick given) noexcept : name(given) {} // NOLINT
    PLUMB_API CheckName(const char* text) noexcept;  // NOLINT
};

PLUMB_API void check_tensor(Recorder& recorder, Queue queue, CheckName what, CheckRole role, const Tensor& tensor,
                            const CheckPlace& place) noexcept;

template <class... Tags>
void check(Recorder& recorder, CheckRole role, Queue queue, CheckName what, const Tensor& tensor,
           Tags... tags) noexcept {
    CheckPlace place;
    (apply_check_tag(place, tags), ...);
    check_tensor(recorder, queue, what, role, tensor, place);
}

} // namespace v1
} // namespace plumb

#if defined(PLUMB_DISABLE)

#define PLUMB_CHECK(prof, ...) ((void)sizeof((::plumb::check((prof), ::plumb::CheckRole::output, __VA_ARGS__), 0)))
#define PLUMB_CHECK_INPUT(prof, ...) ((void)sizeof((::plumb::check((prof), ::plumb::CheckRole::input, __VA_ARGS__), 0)))

#else

#define PLUMB_CHECK_AS(role, prof, ...)                                    \
    do {                                                                   \
        if (PLUMB_UNLIKELY(((prof).mode() & ::plumb::mode_check) != 0)) {  \
            ::plumb::check((prof), ::plumb::CheckRole::role, __VA_ARGS__); \
        }                                                                  \
    } while (false)

/// PLUMB_CHECK(prof, queue, what, tensor, tags…): the tensor that brick `what` just wrote. Put it behind the brick's
/// block, so that the check's own time is not the brick's.
#define PLUMB_CHECK(prof, ...) PLUMB_CHECK_AS(output, prof, __VA_ARGS__)
/// PLUMB_CHECK_INPUT(prof, queue, what, tensor, tags…): a tensor that brick `what` is about to read.
#define PLUMB_CHECK_INPUT(prof, ...) PLUMB_CHECK_AS(input, prof, __VA_ARGS__)

#endif
