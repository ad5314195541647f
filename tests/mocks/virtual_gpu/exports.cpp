// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress, in both of its forms: for each name the newest signature that is not newer than what was asked for.
#include <cstring>

#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

namespace {

enum class Found : int { success = 0, no_symbol = 1, version_not_sufficient = 2 };

CuResult proc_address_v1(const char* symbol, void** function, int version, std::uint64_t flags);
CuResult proc_address_v2(const char* symbol, void** function, int version, std::uint64_t flags, int* status);

Found find(const char* symbol, int version, void** function) {
    Found found = Found::no_symbol;
    int best = -1;
    for (std::size_t i = 0; i < call_count; ++i) {
        const CallInfo& call = info(static_cast<CallId>(i));
        if (std::strcmp(call.symbol, symbol) != 0 || call.version > gpu().config.driver_version) {
            continue;
        }
        if (call.version > version) {
            found = found == Found::success ? found : Found::version_not_sufficient;
        } else if (call.version > best) {
            best = call.version;
            *function = call.address;
            found = Found::success;
        }
    }
    if (std::strcmp(symbol, "cuGetProcAddress") == 0 && version >= 11030) {
        const bool second = version >= 12000;
        *function = second ? reinterpret_cast<void*>(&proc_address_v2) : reinterpret_cast<void*>(&proc_address_v1);
        return Found::success;
    }
    return found;
}

CuResult ask(const char* symbol, void** function, int version, Found* found) {
    if (symbol == nullptr || function == nullptr) {
        return CuResult::invalid_value;
    }
    const std::lock_guard lock(gpu().mutex);
    *function = nullptr;
    if (version > gpu().config.driver_version) {
        return CuResult::invalid_value;
    }
    *found = find(symbol, version, function);
    return CuResult::success;
}

CuResult proc_address_v1(const char* symbol, void** function, int version, std::uint64_t) {
    Found found = Found::no_symbol;
    const CuResult result = ask(symbol, function, version, &found);
    return result == CuResult::success && found != Found::success ? CuResult::not_found : result;
}

CuResult proc_address_v2(const char* symbol, void** function, int version, std::uint64_t, int* status) {
    Found found = Found::no_symbol;
    const CuResult result = ask(symbol, function, version, &found);
    if (status != nullptr) {
        *status = static_cast<int>(found);
    }
    return result;
}

} // namespace

} // namespace plumb::vgpu

extern "C" {

PLUMB_VGPU_API plumb::vgpu::CuResult cuGetProcAddress(const char* symbol, void** function, int version,
                                                      std::uint64_t flags);
PLUMB_VGPU_API plumb::vgpu::CuResult cuGetProcAddress_v2(const char* symbol, void** function, int version,
                                                         std::uint64_t flags, int* status);

plumb::vgpu::CuResult cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags) {
    return plumb::vgpu::proc_address_v1(symbol, function, version, flags);
}

// A driver before 12.0 exports this name too here: the loader decides at load, not at each reset.
plumb::vgpu::CuResult cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                                          int* status) {
    return plumb::vgpu::proc_address_v2(symbol, function, version, flags, status);
}
}
