// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cuda/cublaslt.hpp"

#include <dlfcn.h>

#include <string>

namespace plumb::decoder::cuda {
namespace {

Result<CublasLt> load_cublaslt() {
    void* library = nullptr;
    for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12"}) { // never closed: it keeps threads
        library = library == nullptr ? ::dlopen(name, RTLD_NOW | RTLD_LOCAL) : library;
    }
    if (library == nullptr) {
        return Error{ErrorCode::unavailable, "there is no libcublasLt.so.13 or .12"};
    }
    CublasLt calls;
    const char* missing = nullptr;
#define PLUMB_DECODER_CUBLASLT_FIND(name, symbol, result, parameters)               \
    calls.name = reinterpret_cast<decltype(calls.name)>(::dlsym(library, #symbol)); \
    missing = calls.name == nullptr ? #symbol : missing;
    PLUMB_DECODER_CUBLASLT_CALLS(PLUMB_DECODER_CUBLASLT_FIND)
#undef PLUMB_DECODER_CUBLASLT_FIND
    if (missing != nullptr) {
        return Error{ErrorCode::unavailable, std::string("libcublasLt has no ") + missing};
    }
    return calls;
}

} // namespace

const Result<CublasLt>& cublaslt() {
    static const Result<CublasLt>& only = *new Result<CublasLt>(load_cublaslt());
    return only;
}

} // namespace plumb::decoder::cuda
