// SPDX-License-Identifier: Apache-2.0
#include "virtual_gpu/calls.hpp"

#include <array>
#include <cstring>

namespace plumb::vgpu {

namespace {

#define PLUMB_VGPU_INFO(member, symbol, version, need, parameters) \
    CallInfo{#symbol, version, reinterpret_cast<void*>(&vgpu_##member)},
const std::array<CallInfo, call_count> infos = {{PLUMB_VGPU_CALLS(PLUMB_VGPU_INFO)}};
#undef PLUMB_VGPU_INFO

// The driver's documentation names cudaMalloc as an unsafe call and no others; that the waiting and loading calls are
// unsafe too is belief (docs/internals/virtual_gpu.md).
constexpr const char* unsafe_calls[] = {
    "cuMemAlloc",       "cuMemFree",    "cuMemHostAlloc",     "cuMemFreeHost",    "cuMemcpyHtoD",
    "cuMemcpyDtoH",     "cuMemcpyDtoD", "cuMemsetD32",        "cuModuleLoadData", "cuModuleLoadDataEx",
    "cuModuleUnload",   "cuEventQuery", "cuEventSynchronize", "cuStreamQuery",    "cuStreamSynchronize",
    "cuCtxSynchronize", "cuCtxCreate",  "cuCtxDestroy",
};
constexpr const char* synchronising_calls_[] = {
    "cuStreamSynchronize", "cuEventSynchronize", "cuCtxSynchronize", "cuMemcpyHtoD", "cuMemcpyDtoH",
};
constexpr const char* silently_waiting_calls[] = {
    "cuMemFree",
    "cuMemFreeHost",
    "cuModuleUnload",
    "cuCtxDestroy",
};
constexpr const char* releasing_calls[] = {
    "cuMemFree",          "cuMemFreeHost",      "cuModuleUnload", "cuStreamDestroy",           "cuEventDestroy",
    "cuGraphDestroy",     "cuGraphExecDestroy", "cuCtxDestroy",   "cuDevicePrimaryCtxRelease", "cuCtxPopCurrent",
    "cuStreamEndCapture", "cuGraphDestroyNode",
};
constexpr const char* calls_without_init[] = {"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"};
constexpr const char* calls_without_context[] = {
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetUuid",
    "cuDeviceGetAttribute",
    "cuDeviceTotalMem",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease",
    "cuCtxGetCurrent",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuCtxGetId",
    "cuCtxCreate",
    "cuCtxDestroy",
    "cuCtxSetCurrent",
    "cuThreadExchangeStreamCaptureMode",
    "cuStreamGetCtx",
    "cuMemHostGetDevicePointer",
};

template <std::size_t n>
bool among(const char* symbol, const char* const (&names)[n]) {
    for (const char* name : names) {
        if (std::strcmp(symbol, name) == 0) {
            return true;
        }
    }
    return false;
}

// Questions about graphs and functions need no current context.
bool is_graph_structure(const char* symbol) {
    return (std::strncmp(symbol, "cuGraph", 7) == 0 && std::strcmp(symbol, "cuGraphLaunch") != 0 &&
            std::strcmp(symbol, "cuGraphUpload") != 0 && std::strcmp(symbol, "cuGraphInstantiateWithFlags") != 0) ||
           std::strncmp(symbol, "cuFunc", 6) == 0 || std::strncmp(symbol, "cuKernel", 8) == 0 ||
           std::strncmp(symbol, "cuUserObject", 12) == 0;
}

std::array<Traits, call_count> all_traits() {
    std::array<Traits, call_count> all;
    for (std::size_t i = 0; i < call_count; ++i) {
        const char* symbol = infos[i].symbol;
        Traits& t = all[i];
        t.unsafe = among(symbol, unsafe_calls);
        t.synchronises = among(symbol, synchronising_calls_);
        t.waits_unsaid = among(symbol, silently_waiting_calls);
        t.releases = among(symbol, releasing_calls);
        t.survives_loss = among(symbol, calls_without_init);
        t.needs_init = !t.survives_loss;
        t.needs_context = t.needs_init && !among(symbol, calls_without_context) && !is_graph_structure(symbol);
    }
    return all;
}

} // namespace

const CallInfo& info(CallId id) { return infos[static_cast<std::size_t>(id)]; }

const Traits& traits(CallId id) {
    static const std::array<Traits, call_count> all = all_traits();
    return all[static_cast<std::size_t>(id)];
}

} // namespace plumb::vgpu
