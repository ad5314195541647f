// SPDX-License-Identifier: Apache-2.0
// What ran inside a brick, in the words that Recorder::record_kernel(), record_transfer(), record_task() and
// add_dependency() take: launch shapes, buffers, handles of what was recorded, the hash of a kernel's code.
// Plain values; no thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "plumb/work.hpp"

namespace plumb {

enum class TransferDirection : std::uint8_t { host_to_device, device_to_host, device_to_device };

inline namespace v1 {

/// A moment on the profiler's clock; only the resolver turns it into nanoseconds.
struct Timestamp {
    std::uint64_t ticks = 0;
};

/// Blocks of a grid, or threads of a block.
struct Extent {
    std::uint32_t x = 1, y = 1, z = 1;
    constexpr Extent() noexcept = default;
    constexpr Extent(std::uint32_t nx, std::uint32_t ny = 1,
                     std::uint32_t nz = 1) noexcept // NOLINT: implicit by design
        : x(nx), y(ny), z(nz) {}
};

/// The caller's number of a buffer: its address, or any other that stays the same; 0: not known. Only the number is kept.
struct Buffer {
    std::uint64_t number = 0;
    constexpr Buffer() noexcept = default;
    Buffer(const void* address) noexcept // NOLINT: implicit by design
        : number(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address))) {}
    template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0>
    constexpr Buffer(T value) noexcept : number(static_cast<std::uint64_t>(value)) {} // NOLINT: implicit by design
};

/// What record_kernel(), record_transfer() and record_task() recorded. May be kept and given to any thread.
struct NodeHandle {
    std::uint64_t sequence = 0; // of its record within the track
    std::uint32_t track = 0;    // 0: nothing was recorded
    [[nodiscard]] constexpr bool recorded() const noexcept { return track != 0; }
};

namespace detail {

struct TimedTag {
    Timestamp begin, end;
};

/// What the tags of one node say.
struct NodeTags {
    Work work = make_work();
    bool has_work = false;
    bool is_timed = false;
    Timestamp begin, end;
};

} // namespace detail

/// When a kernel or transfer ran, both moments from Recorder::now(). Without it only the moment of the call is known.
constexpr detail::TimedTag timed(Timestamp begin, Timestamp end) noexcept { return {begin, end}; }

/// FNV-1a, 64 bits, of a kernel's PTX or binary: how record_kernel() and Profiler::register_kernel() name its code.
constexpr std::uint64_t code_hash(const char* code, std::size_t size) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (std::size_t i = 0; i < size; ++i) {
        hash = (hash ^ static_cast<unsigned char>(code[i])) * 0x100000001b3;
    }
    return hash;
}
inline std::uint64_t code_hash(const void* code, std::size_t size) noexcept {
    return code_hash(static_cast<const char*>(code), size);
}

template <detail::WorkQuantity Quantity>
constexpr void apply(detail::NodeTags& tags, detail::WorkTag<Quantity> tag) noexcept {
    apply(tags.work, tag);
    tags.has_work = true;
}
constexpr void apply(detail::NodeTags& tags, detail::TimedTag tag) noexcept {
    tags.is_timed = true;
    tags.begin = tag.begin;
    tags.end = tag.end;
}
template <class... Tags>
constexpr detail::NodeTags make_node_tags(Tags... tags) noexcept {
    detail::NodeTags made;
    (apply(made, tags), ...);
    return made;
}

} // namespace v1
} // namespace plumb
