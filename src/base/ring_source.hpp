// SPDX-License-Identifier: Apache-2.0
// What timed the scopes of a ring's thread, in the page of the ring's header (docs/reference/plumb_format.md), behind what older readers know: 0 in
// rings of older writers. Thread rule: stored by the ring's thread before its first record; read by the drain, and by another process
// when the writer is dead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace plumb::base {

enum class RingSource : std::uint32_t {
    clock = 0, // the recording's clock, at scopes
    nvtx = 1,  // the same clock, at ranges that the program marked for another tool
};

inline constexpr const char* nvtx_source = "nvtx"; // as tracks have it

inline constexpr std::size_t ring_source_at = 3072; // in the page
static_assert(sizeof(detail::RingHeader) <= ring_source_at && ring_source_at + sizeof(RingSource) <= detail::ring_page);

/// Its place in the page.
inline std::atomic_ref<std::uint32_t> source_word(detail::RingHeader& ring) noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(reinterpret_cast<std::byte*>(&ring) + ring_source_at));
}

/// Relaxed: whoever sees the thread's records sees it, for they are published with release.
inline void set_source(detail::RingHeader& ring, RingSource source) noexcept {
    source_word(ring).store(static_cast<std::uint32_t>(source), std::memory_order_relaxed);
}
inline RingSource source_of(detail::RingHeader& ring) noexcept {
    return static_cast<RingSource>(source_word(ring).load(std::memory_order_relaxed));
}

} // namespace plumb::base
