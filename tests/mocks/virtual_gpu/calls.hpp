// SPDX-License-Identifier: Apache-2.0
// Every entry point of the virtual driver: its number, its traits and its declaration. A call in one of the two lists
// that nobody defines fails to link.
#pragma once

#include "backends/cuda/driver_calls.hpp"
#include "virtual_gpu/control.hpp"
#include "virtual_gpu/engine_calls.hpp"

#define PLUMB_VGPU_CALLS(X) PLUMB_CUDA_CALLS(X) PLUMB_ENGINE_CALLS(X)

namespace plumb::vgpu {

enum class CallId : unsigned {
#define PLUMB_VGPU_ID(member, symbol, version, need, parameters) member,
    PLUMB_VGPU_CALLS(PLUMB_VGPU_ID)
#undef PLUMB_VGPU_ID
        count
};
inline constexpr std::size_t call_count = static_cast<std::size_t>(CallId::count);

struct CallInfo {
    const char* symbol;
    int version;
    void* address;
};
const CallInfo& info(CallId id);

/// What the rules of capture, contexts and failures need to know about an entry point.
struct Traits {
    bool unsafe = false;        // "potentially unsafe" during a capture
    bool synchronises = false;  // says that it waits
    bool waits_unsaid = false;  // waits, but its name does not say so
    bool releases = false;      // gives something back, even when it returns an error
    bool needs_init = true;     // fails before cuInit
    bool needs_context = false; // fails without a current context
    bool survives_loss = false; // works on a lost device
};
const Traits& traits(CallId id);

extern "C" {
#define PLUMB_VGPU_DECLARE(member, symbol, version, need, parameters) PLUMB_VGPU_API CuResult vgpu_##member parameters;
PLUMB_VGPU_CALLS(PLUMB_VGPU_DECLARE)
#undef PLUMB_VGPU_DECLARE
}

} // namespace plumb::vgpu
