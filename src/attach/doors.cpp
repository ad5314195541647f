// SPDX-License-Identifier: Apache-2.0
// The names that the library exports: the only ways in. Each does nothing unless PLUMB asks for a recording.
#include <cstdlib>
#include <dlfcn.h>

#include "attach/attachment.hpp"
#include "attach/ggml/hooks.hpp"
#include "attach/nvtx/hooks.hpp"
#include "plumb/api.hpp"

using namespace plumb::attach;

/// GGML_BACKEND_PATH names a library that ggml loads last when it loads its backends, and asks what it scores. Zero is
/// "not supported on this system": ggml closes it and says nothing.
extern "C" PLUMB_API int ggml_backend_score() {
    ggml::open_door("GGML_BACKEND_PATH");
    // `plumb run` kept the library that the variable named before.
    if (const char* next = std::getenv("PLUMB_NEXT_GGML_BACKEND"); next != nullptr && *next != '\0') {
        using Load = void* (*)(const char*);
        if (auto load = reinterpret_cast<Load>(ggml::original_for("ggml_backend_load", __builtin_return_address(0)));
            load != nullptr) {
            (void)load(next);
        }
    }
    return 0;
}

/// LD_PRELOAD: a context is about to be made. Called only where no slot leads to us yet.
extern "C" PLUMB_API void* ggml_backend_sched_new(void* a, void* b, long c, long d, long e, long f) {
    using New = void* (*)(void*, void*, long, long, long, long);
    auto original = reinterpret_cast<New>(ggml::original_for("ggml_backend_sched_new", __builtin_return_address(0)));
    ggml::open_door("LD_PRELOAD");
    return original != nullptr ? original(a, b, c, d, e, f) : nullptr;
}

/// NVTX_INJECTION64_PATH names a library that each shared object with NVTX loads with its first call, and hands its tables to. Zero:
/// the object's NVTX does nothing.
extern "C" PLUMB_API int InitializeInjectionNvtx2(nvtx::ExportTable get) { return nvtx::open_door(get) ? 1 : 0; }
