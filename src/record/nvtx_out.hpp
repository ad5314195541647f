// SPDX-License-Identifier: Apache-2.0
// nvtx=on: scopes, laps, steps and layers told as NVTX ranges to the tool whose library NVTX_INJECTION64_PATH names, as Nsight Systems
// sets it, so that it shows bricks. As a program with NVTX does it; ranges are of the domain "plumb".
// Such a recorder is always on the slow path of scopes (mode_indirect), where it is asked: any other costs nothing for it.
// Thread rule: any thread; what a thread pushed, it pops.
#pragma once

#include <atomic>
#include <cstdint>

#include "plumb/record.hpp"
#include "plumb/result.hpp"

namespace plumb::record {

/// Loads the tool's library, once a process. Error unavailable: none is named or it cannot be used; one sentence.
Status open_nvtx();

/// From now on, to the end of the recorder, what it records is told.
/// Error out_of_memory beyond most_told recorders.
Status tell_nvtx(const Recorder& recorder);
void forget_nvtx(const Recorder& recorder) noexcept;
[[nodiscard]] bool tells_nvtx(const Recorder& recorder) noexcept;

/// How many recorders are told.
extern std::atomic<std::uint32_t> nvtx_recorders;
namespace told {
void push(const Recorder& recorder, std::uint64_t bits) noexcept;
void push_step(const Recorder& recorder, Phase phase) noexcept;
void push_layer(const Recorder& recorder, std::uint32_t layer) noexcept;
void pop(const Recorder& recorder) noexcept;
} // namespace told

/// All do nothing for a recorder that is not told; one relaxed load where none is. `bits`: of the record of a scope.
inline void nvtx_push(const Recorder& recorder, std::uint64_t bits) noexcept {
    if (PLUMB_UNLIKELY(nvtx_recorders.load(std::memory_order_relaxed) != 0)) {
        told::push(recorder, bits);
    }
}
inline void nvtx_push_step(const Recorder& recorder, Phase phase) noexcept {
    if (PLUMB_UNLIKELY(nvtx_recorders.load(std::memory_order_relaxed) != 0)) {
        told::push_step(recorder, phase);
    }
}
inline void nvtx_push_layer(const Recorder& recorder, std::uint32_t layer) noexcept {
    if (PLUMB_UNLIKELY(nvtx_recorders.load(std::memory_order_relaxed) != 0)) {
        told::push_layer(recorder, layer);
    }
}
inline void nvtx_pop(const Recorder& recorder) noexcept {
    if (PLUMB_UNLIKELY(nvtx_recorders.load(std::memory_order_relaxed) != 0)) {
        told::pop(recorder);
    }
}

} // namespace plumb::record
