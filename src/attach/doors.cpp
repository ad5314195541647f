// SPDX-License-Identifier: Apache-2.0
// The names that the library exports: the only ways in. Each does nothing unless PLUMB asks for a recording.
#include <dlfcn.h>

#include "attach/cudart/hooks.hpp"
#include "attach/cupti/kernels.hpp"
#include "attach/functions.hpp"
#include "attach/ggml/hooks.hpp"
#include "attach/nvtx/hooks.hpp"
#include "attach/onnxruntime/hooks.hpp"
#include "attach/opencl/layer.hpp"
#include "attach/vulkan/layer.hpp"
#include "attach/wiring.hpp"
#include "base/os.hpp"
#include "plumb/api.hpp"

using namespace plumb::attach;

namespace {

int begin_capture(const char* symbol, const void* caller, void* stream, int mode) {
    const auto original = reinterpret_cast<int (*)(void*, int)>(original_for(symbol, caller));
    cudart::open_door("LD_PRELOAD");
    constexpr int not_supported = 801; // cudaErrorNotSupported
    return original != nullptr ? original(stream, mode) : not_supported;
}

} // namespace

/// GGML_BACKEND_PATH names a library that ggml loads last when it loads its backends, and asks what it scores. Zero is
/// "not supported on this system": ggml closes it and says nothing.
extern "C" PLUMB_API int ggml_backend_score() {
    ggml::open_door("GGML_BACKEND_PATH");
    cudart::open_door("GGML_BACKEND_PATH");
    // `plumb run` kept the library that the variable named before.
    if (const char* next = plumb::base::environment("PLUMB_NEXT_GGML_BACKEND"); next != nullptr && *next != '\0') {
        using Load = void* (*)(const char*);
        if (auto load = reinterpret_cast<Load>(original_for("ggml_backend_load", __builtin_return_address(0)));
            load != nullptr) {
            (void)load(next);
        }
    }
    return 0;
}

/// LD_PRELOAD: a context is about to be made. Called only where no slot leads to us yet.
extern "C" PLUMB_API void* ggml_backend_sched_new(void* a, void* b, long c, long d, long e, long f) {
    using New = void* (*)(void*, void*, long, long, long, long);
    auto original = reinterpret_cast<New>(original_for("ggml_backend_sched_new", __builtin_return_address(0)));
    ggml::open_door("LD_PRELOAD");
    return original != nullptr ? original(a, b, c, d, e, f) : nullptr;
}

/// LD_PRELOAD: a CUDA graph is about to be captured. Called only where no slot leads to us yet.
extern "C" PLUMB_API int cudaStreamBeginCapture(void* stream, int mode) {
    return begin_capture("cudaStreamBeginCapture", __builtin_return_address(0), stream, mode);
}
extern "C" PLUMB_API int cudaStreamBeginCapture_ptsz(void* stream, int mode) {
    return begin_capture("cudaStreamBeginCapture_ptsz", __builtin_return_address(0), stream, mode);
}

/// NVTX_INJECTION64_PATH names a library that each shared object with NVTX loads with its first call, and hands its tables to. Zero:
/// the object's NVTX does nothing.
extern "C" PLUMB_API int InitializeInjectionNvtx2(nvtx::ExportTable get) { return nvtx::open_door(get) ? 1 : 0; }

/// LD_PRELOAD: a program asks for onnxruntime's functions.
extern "C" PLUMB_API const void* OrtGetApiBase() {
    return onnxruntime::base_of(original_for("OrtGetApiBase", __builtin_return_address(0)));
}

/// CUDA_INJECTION64_PATH names a library that the driver loads in a process's first cuInit().
extern "C" PLUMB_API int InitializeInjection() {
    cupti::open_door();
    return 1;
}

/// VK_INSTANCE_LAYERS names a layer, whose manifest names this library.
extern "C" PLUMB_API int vkNegotiateLoaderLayerInterfaceVersion(vulkan::NegotiateLayerInterface* offered) {
    return static_cast<int>(vulkan::negotiate(offered));
}

/// OPENCL_LAYERS names this library as a layer.
extern "C" PLUMB_API std::int32_t clGetLayerInfo(std::uint32_t what, std::size_t room, void* value, std::size_t* size) {
    return opencl::layer_info(what, room, value, size);
}
extern "C" PLUMB_API std::int32_t clInitLayer(std::uint32_t count, void* const* below, std::uint32_t* our_count,
                                              void* const** ours) {
    return opencl::init_layer(count, below, our_count, ours);
}

/// What Python's package looks for in the process, and calls in place of its own libplumb where it is.
extern "C" PLUMB_API void* plumb_attach_function(const char* name) { return function(name); }
