// SPDX-License-Identifier: Apache-2.0
// A stand-in libcublas over the stand-in libcudart: each product is one kernel on the stream of its handle.
#include <cstddef>

#define CUBLAS extern "C" __attribute__((visibility("default")))

extern "C" {
struct Dimensions {
    unsigned x, y, z;
};
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*);
int cudaLaunchKernel(const void*, Dimensions, Dimensions, void**, std::size_t, void*);
}

namespace {

struct Handle {
    void* stream = nullptr;
};

const char stub = 0;

int product(const Handle* handle, int m, int n) {
    static const bool registered = [] {
        __cudaRegisterFunction(__cudaRegisterFatBinary(nullptr), &stub, nullptr, "virtual_cublas_gemm", -1, nullptr,
                               nullptr, nullptr, nullptr, nullptr);
        return true;
    }();
    (void)registered;
    const auto blocks = [](int size) {
        return static_cast<unsigned>((size + 63) / 64);
    };
    return cudaLaunchKernel(&stub, {blocks(m), blocks(n), 1}, {128, 1, 1}, nullptr, 0, handle->stream) == 0
               ? 0
               : 13; // CUBLAS_STATUS_EXECUTION_FAILED
}

} // namespace

CUBLAS int cublasCreate_v2(Handle** made) {
    *made = new Handle;
    return 0;
}
CUBLAS int cublasDestroy_v2(Handle* handle) {
    delete handle;
    return 0;
}
CUBLAS int cublasSetStream_v2(Handle* handle, void* stream) {
    handle->stream = stream;
    return 0;
}
CUBLAS int cublasSetMathMode(Handle*, int) { return 0; }
CUBLAS int cublasSetWorkspace_v2(Handle*, void*, std::size_t) { return 0; }
CUBLAS const char* cublasGetStatusString(int) { return "a status of the stand-in"; }
// Of each, the parameters up to the sizes; what follows is not read.
CUBLAS int cublasSgemm_v2(const Handle* handle, int, int, int m, int n) { return product(handle, m, n); }
CUBLAS int cublasGemmEx(const Handle* handle, int, int, int m, int n) { return product(handle, m, n); }
CUBLAS int cublasSgemmBatched(const Handle* handle, int, int, int m, int n) { return product(handle, m, n); }
CUBLAS int cublasSgemmStridedBatched(const Handle* handle, int, int, int m, int n) { return product(handle, m, n); }
CUBLAS int cublasGemmBatchedEx(const Handle* handle, int, int, int m, int n) { return product(handle, m, n); }
CUBLAS int cublasGemmStridedBatchedEx(const Handle* handle, int, int, int m, int n) { return product(handle, m, n); }
CUBLAS int cublasStrsmBatched(const Handle* handle, int, int, int, int, int m, int n) { return product(handle, m, n); }
