// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/opencl/api.hpp"

#include <dlfcn.h>

#include <string>

namespace plumb::decoder::opencl {
namespace {

Result<Api> load() {
    void* library = ::dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL); // never closed: drivers keep threads
    if (library == nullptr) {
        return Error{ErrorCode::unavailable, "libOpenCL.so.1 is not there; install an OpenCL loader "
                                             "(ocl-icd-libopencl1) and a driver for your device, or use --backend cpu"};
    }
    Api calls;
    const char* missing = nullptr;
#define PLUMB_DECODER_OPENCL_FIND(call)                                        \
    calls.call = reinterpret_cast<decltype(&::call)>(::dlsym(library, #call)); \
    missing = calls.call == nullptr ? #call : missing;
    PLUMB_DECODER_OPENCL_CALLS(PLUMB_DECODER_OPENCL_FIND)
#undef PLUMB_DECODER_OPENCL_FIND
    if (missing != nullptr) {
        return Error{ErrorCode::unavailable, std::string("libOpenCL.so.1 has no ") + missing +
                                                 "; install an OpenCL loader of version 1.2 or later"};
    }
    return calls;
}

} // namespace

const Result<Api>& api() {
    static const Result<Api>& only = *new Result<Api>(load());
    return only;
}

} // namespace plumb::decoder::opencl
