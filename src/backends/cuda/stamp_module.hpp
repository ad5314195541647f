// SPDX-License-Identifier: Apache-2.0
// One-thread kernels that write the device's nanosecond clock into a ring (stamp.ptx), loaded once per context.
// Owned by the context. Thread rule: any thread. Ask before any capture begins: loading is not allowed inside one.
#pragma once

#include <cstdint>

#include "backends/cuda/driver.hpp"

namespace plumb::backends::cuda {

struct StampModule {
    Module module = nullptr;
    /// plumb_stamp(u64 ring, u64 counter, u32 slot, u32 slots, u32 mask, u32 advance), one thread:
    /// ((u64*)ring)[(*(u64*)counter & mask) * slots + slot] = %globaltimer; *(u64*)counter += advance. StampParameters, in
    /// this order.
    Function stamp = nullptr;
    /// plumb_stamp_advance(u64 counter), one thread: *(u64*)counter += 1, after the last stamp of a replay.
    Function advance = nullptr;
};

/// The parameters of plumb_stamp; `pointers` are what cuLaunchKernel and kernel nodes take.
struct StampParameters {
    DevicePointer ring = 0;    // (mask + 1) * slots values of 64 bits
    DevicePointer counter = 0; // replays so far
    std::uint32_t slot = 0;    // which site
    std::uint32_t slots = 0;   // sites of one replay
    std::uint32_t mask = 0; // replays the ring holds, a power of two, less one: a remainder would cost a soft division

    std::uint32_t advance = 0; // 1: the last stamp of a replay, and nothing else moves the ring on

    void fill(void* (&pointers)[6]) noexcept {
        pointers[0] = &ring, pointers[1] = &counter, pointers[2] = &slot, pointers[3] = &slots, pointers[4] = &mask;
        pointers[5] = &advance;
    }
};

/// Error unsupported with the reason where the driver cannot load them (no JIT compiler, a PTX it does not know).
Result<const StampModule*> stamp_module(const Driver& driver, Context context);
Result<const StampModule*> stamp_module(Context context);

} // namespace plumb::backends::cuda
