// SPDX-License-Identifier: Apache-2.0
// The driver as an engine under test sees it: every entry point of the library's list and of engine_calls.hpp, found as
// an engine would find it. Not the library's own table: what a test does must not pass through what it tests.
#pragma once

#include <dlfcn.h>

#include "backends/cuda/driver_calls.hpp"
#include "virtual_gpu/control.hpp"
#include "virtual_gpu/engine_calls.hpp"

namespace plumb::vgpu {

inline constexpr CuResult ok = CuResult::success;

struct EngineDriver {
#define PLUMB_VGPU_MEMBER(member, symbol, version, need, parameters) CuResult(*member) parameters = nullptr;
    PLUMB_CUDA_CALLS(PLUMB_VGPU_MEMBER)
    PLUMB_ENGINE_CALLS(PLUMB_VGPU_MEMBER)
#undef PLUMB_VGPU_MEMBER
};

/// Members newer than the emulated driver are null. Load again after a reset() to another driver version.
inline EngineDriver load_engine_driver() {
    using ProcAddress = CuResult (*)(const char*, void**, int, std::uint64_t, int*);
    EngineDriver driver;
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return driver;
    }
    const auto proc_address = reinterpret_cast<ProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
    void* found = nullptr;
#define PLUMB_VGPU_LOAD(member, symbol, version, need, parameters)               \
    if (proc_address(#symbol, &found, version, 0, nullptr) == CuResult::success) \
        driver.member = reinterpret_cast<decltype(driver.member)>(found);
    PLUMB_CUDA_CALLS(PLUMB_VGPU_LOAD)
    PLUMB_ENGINE_CALLS(PLUMB_VGPU_LOAD)
#undef PLUMB_VGPU_LOAD
    return driver;
}

/// The driver of version 13.0, loaded once.
inline const EngineDriver& engine_driver() {
    static const EngineDriver driver = [] {
        reset();
        return load_engine_driver();
    }();
    return driver;
}

/// A test that begins with a fresh GPU, cuInit done and the primary context of device 0 current.
class Engine {
  public:
    explicit Engine(const Config& config = {}) {
        engine_driver();
        reset(config);
        cu = load_engine_driver();
        cu.init(0);
        cu.primary_ctx_retain(&context, 0);
        cu.ctx_push_current(context);
        cu.module_load_data(&module_, "an image"); // here, for loading is unsafe during a capture
    }
    ~Engine() {
        clear_failures();
        cu.module_unload(module_);
        Context popped = nullptr;
        cu.ctx_pop_current(&popped);
        cu.primary_ctx_release(0);
    }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    Stream stream(unsigned flags = stream_non_blocking) {
        Stream made = nullptr;
        cu.stream_create(&made, flags);
        return made;
    }
    Event event(unsigned flags = event_default) {
        Event made = nullptr;
        cu.event_create(&made, flags);
        return made;
    }
    /// A kernel of this name, in a module of any image.
    Function function(const char* name) {
        Function found = nullptr;
        cu.module_get_function(&found, module_, name);
        return found;
    }
    CuResult launch(const char* name, Stream in, void** params = nullptr) {
        return cu.launch_kernel(function(name), 1, 1, 1, 32, 1, 1, 0, in, params, nullptr);
    }

    EngineDriver cu;
    Context context = nullptr;

  private:
    Module module_ = nullptr;
};

} // namespace plumb::vgpu
