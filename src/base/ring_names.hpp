// SPDX-License-Identifier: Apache-2.0
// Names in a ring file (docs/reference/plumb_format.md): what a process has interned and no drain has written yet, for whoever reads its rings
// after its death. The header lies in the file's first page, the names between that page and the rings.
// Thread rule: written under the lock of the name registry; read by another process, when the writer is dead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace plumb::base {

inline constexpr std::uint32_t ring_file_version = 2; // 1 had no names
inline constexpr std::size_t ring_names_at = 3072;    // of the header, in the first page
inline constexpr std::uint32_t ring_names_bytes = 64 * 1024;

struct RingNames {
    std::uint32_t bytes;             // between the first page and the rings: whole pages
    std::atomic<std::uint32_t> used; // of them. Release: what lies below is whole

    [[nodiscard]] std::byte* text() noexcept {
        return reinterpret_cast<std::byte*>(this) + (detail::ring_page - ring_names_at);
    }
};

/// Before the bytes of each name.
struct RingName {
    std::uint16_t id;
    std::uint16_t category;
    std::uint16_t size; // of the name
};

static_assert(sizeof(detail::RingFileHeader) <= ring_names_at &&
              ring_names_at + sizeof(RingNames) <= detail::ring_page && ring_names_bytes % detail::ring_page == 0);

} // namespace plumb::base
