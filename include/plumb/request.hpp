// SPDX-License-Identifier: Apache-2.0
// PLUMB_REQUEST: when a request of a server waits, is prefilled, has its KV cache moved, is decoded, and ends;
// PLUMB_STEP_REQUEST: which requests are in the batch of a step. `plumb requests` answers from both, `plumb export --format otlp`
// writes them as traces. Off, a macro costs one relaxed load; its arguments are not evaluated.
// Thread rule: as for every recording call, from any thread; marks of one request may come from several.
#pragma once

#include <cstdint>
#include <type_traits>

#include "plumb/record.hpp"

namespace plumb {
inline namespace v1 {

/// What a request does from its mark to the next one. A request may come back to a phase: one that is preempted to queue.
enum class RequestPhase : std::uint8_t {
    queue = 1,       // it has arrived, or was preempted, and waits
    prefill = 2,     // its prompt is worked on; the phase ends when its first token is there
    kv_transfer = 3, // its KV cache moves, from another machine or tier
    decode = 4,      // its further tokens are worked on
    end = 5,         // it is done, or given up
};

namespace detail {

inline constexpr std::uint64_t tokens_not_said = ~std::uint64_t{0};

struct RequestTags {
    std::uint64_t tokens = tokens_not_said;
    const char* trace_parent = nullptr;
};
struct TraceParentTag {
    const char* header;
};

constexpr void apply_request_tag(RequestTags& tags, TokensTag tag) noexcept { tags.tokens = tag.value; }
constexpr void apply_request_tag(RequestTags& tags, TraceParentTag tag) noexcept { tags.trace_parent = tag.header; }

PLUMB_API void put_request(Recorder& recorder, std::uint64_t id, RequestMark mark, const RequestTags& tags) noexcept;

template <class Id, class... Tags, std::enable_if_t<std::is_integral_v<Id>, int> = 0>
void mark_request(Recorder& recorder, Id id, RequestPhase phase, Tags... tags) noexcept {
    RequestTags all;
    (apply_request_tag(all, tags), ...);
    put_request(recorder, static_cast<std::uint64_t>(id), static_cast<RequestMark>(phase), all);
}
template <class Id, std::enable_if_t<std::is_integral_v<Id>, int> = 0>
void mark_in_step(Recorder& recorder, Id id) noexcept {
    put_request(recorder, static_cast<std::uint64_t>(id), RequestMark::in_step, {});
}

} // namespace detail

/// The W3C `traceparent` header that the request came with: 00-<32 hex digits>-<16 hex digits>-<2 hex digits>. It is read
/// during the call; null says nothing, and one that is not of that form is counted. `redact=on` leaves it out.
constexpr detail::TraceParentTag trace_parent(const char* header) noexcept { return {header}; }

} // namespace v1
} // namespace plumb

#if defined(PLUMB_DISABLE)

#define PLUMB_REQUEST(prof, ...) ((void)sizeof((::plumb::detail::mark_request((prof), __VA_ARGS__), 0)))
#define PLUMB_STEP_REQUEST(prof, ...) ((void)sizeof((::plumb::detail::mark_in_step((prof), __VA_ARGS__), 0)))

#else

/// PLUMB_REQUEST(prof, id, phase, tags…): from here on the request is in that phase. `id`: any integer of the caller, of one
/// request at a time; shown as an unsigned one of 64 bits, so that -1 is 18446744073709551615. Tags: trace_parent(header),
/// best with its first mark; tokens(n), with RequestPhase::end: how many it gave, 0 where it was given up before its first.
#define PLUMB_REQUEST(prof, ...)                                \
    do {                                                        \
        if (PLUMB_UNLIKELY((prof).enabled())) {                 \
            ::plumb::detail::mark_request((prof), __VA_ARGS__); \
        }                                                       \
    } while (false)
/// PLUMB_STEP_REQUEST(prof, id): the request is in the batch of the step that is open on this thread.
#define PLUMB_STEP_REQUEST(prof, ...)                           \
    do {                                                        \
        if (PLUMB_UNLIKELY((prof).enabled())) {                 \
            ::plumb::detail::mark_in_step((prof), __VA_ARGS__); \
        }                                                       \
    } while (false)

#endif
