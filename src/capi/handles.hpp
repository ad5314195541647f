// SPDX-License-Identifier: Apache-2.0
// What stands behind the handles of plumb.h, and how its functions fail: with a code, and a sentence of the calling thread.
// Thread rule: every function from any thread.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "plumb/plumb.h"
#include "plumb/profiler.hpp"

struct plumb_profiler {
    plumb::Profiler profiler;
};

namespace plumb::capi {

/// ErrorCode by its C value; plumb_ok comes before all.
constexpr plumb_code code_of(ErrorCode code) noexcept { return static_cast<plumb_code>(code) + 1; }

/// Keeps the sentence for plumb_last_error(), and returns the code.
PLUMB_NOINLINE plumb_code fail(ErrorCode code, std::string_view sentence) noexcept;
inline plumb_code fail(const Error& error) noexcept { return fail(error.code, error.message); }
inline plumb_code code_of(const Status& status) noexcept { return status.ok() ? plumb_ok : fail(status.error()); }

/// For an argument that is NULL and must not be.
PLUMB_NOINLINE plumb_code missing(const char* what) noexcept;
PLUMB_NOINLINE plumb_code no_profiler() noexcept;

/// Runs what may throw: no exception leaves a C function.
template <class F>
plumb_code guarded(F&& run) noexcept {
    try {
        return run();
    } catch (const std::bad_alloc&) {
        return fail(ErrorCode::out_of_memory, "there is no memory left for this call; free some and call again");
    } catch (const std::exception& thrown) {
        return fail(ErrorCode::failed, thrown.what());
    }
}

/// For a struct of another size than ours: true when it is larger, from a newer plumb.h, and all that we do not know is 0.
PLUMB_NOINLINE bool fits_ours(const void* given, std::size_t ours, const char* type) noexcept;

/// Whether a struct that the caller filled can be taken; if not, the sentence is set.
template <class T>
PLUMB_ALWAYS_INLINE bool fits(const T* given, const char* type) noexcept {
    return PLUMB_LIKELY(given != nullptr && given->struct_size == sizeof(T)) || fits_ours(given, sizeof(T), type);
}
/// Whether a struct that we fill has room for it.
PLUMB_NOINLINE bool has_room(const void* out, std::size_t ours, const char* type) noexcept;

inline Queue queue_of(const plumb_queue* queue) noexcept {
    return queue == nullptr ? host : Queue{static_cast<QueueTimer*>(queue->timer), queue->track};
}
PLUMB_ALWAYS_INLINE bool fits_queue(const plumb_queue* queue) noexcept {
    return queue == nullptr || fits(queue, "plumb_queue");
}

} // namespace plumb::capi
