// SPDX-License-Identifier: Apache-2.0
// The parts of the Objective-C runtime's and Metal's ABI that we use, stated here so that neither an SDK nor an
// Objective-C compiler is needed to build. Values are those of Apple's headers. Plain data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::backends::metal {

using Id = void*;       // any object
using Selector = void*; // a message's name

// MTLCommandBufferStatus
inline constexpr std::uint64_t status_committed = 2; // from here on no handler may be added
inline constexpr std::uint64_t status_completed = 4;
inline constexpr std::uint64_t status_error = 5;

// MTLCounterSamplingPoint
inline constexpr std::uint64_t at_stage_boundary = 0;
inline constexpr std::uint64_t at_dispatch_boundary = 2;

inline constexpr std::uint64_t storage_shared = 0;
inline constexpr std::uint64_t counter_error = ~std::uint64_t{0}; // MTLCounterErrorValue
inline constexpr std::int32_t clock_uptime_raw = 8;               // the clock of GPUStartTime: it stops while asleep

/// What the blocks ABI lays down of a block that captures one pointer.
struct ObjcBlock {
    struct Layout {
        std::size_t reserved;
        std::size_t size;
        void (*copy)(ObjcBlock* to, const ObjcBlock* from);
        void (*dispose)(ObjcBlock* block);
    };
    void* isa;
    std::int32_t flags;
    std::int32_t reserved;
    void (*invoke)(ObjcBlock* block, Id command_buffer);
    const Layout* layout;
    void* captured;
};
inline constexpr std::int32_t block_has_copy_dispose = 1 << 25;

} // namespace plumb::backends::metal
