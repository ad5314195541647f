// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/driver.hpp"

#include <dlfcn.h>

#include <string>

namespace plumb::decoder::cuda {
namespace {

Result<CudaDriver> load() {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); // never closed: drivers keep threads
    if (library == nullptr) {
        return Error{ErrorCode::unavailable,
                     "libcuda.so.1 is not there; install the NVIDIA driver, or use --backend cpu"};
    }
    CudaDriver calls;
    const char* missing = nullptr;
#define PLUMB_DECODER_CUDA_FIND(name, symbol, parameters)                           \
    calls.name = reinterpret_cast<decltype(calls.name)>(::dlsym(library, #symbol)); \
    missing = calls.name == nullptr ? #symbol : missing;
    PLUMB_DECODER_CUDA_CALLS(PLUMB_DECODER_CUDA_FIND)
#undef PLUMB_DECODER_CUDA_FIND
    if (missing != nullptr) {
        return Error{ErrorCode::unavailable, std::string("libcuda.so.1 has no ") + missing +
                                                 "; install an NVIDIA driver for CUDA 11.8 or later"};
    }
    return calls;
}

} // namespace

const Result<CudaDriver>& driver() {
    static const Result<CudaDriver>& only = *new Result<CudaDriver>(load());
    return only;
}

} // namespace plumb::decoder::cuda
