// SPDX-License-Identifier: Apache-2.0
// As much of the CUDA driver as the example needs, found at run time: no toolkit is needed to build it, and it runs on
// whatever libcuda.so.1 is there. An engine includes cuda.h instead. Owned by main(); one thread.
#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

struct CUctx_st;
struct CUstream_st;
struct CUgraph_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUfunc_st;

namespace small_cuda {

struct Driver {
    template <class F>
    static void find(void* library, const char* name, F& function) {
        function = reinterpret_cast<F>(dlsym(library, name));
        if (function == nullptr) {
            std::fprintf(stderr, "libcuda.so.1 has no %s; update the NVIDIA driver\n", name);
            std::exit(2);
        }
    }
    Driver() {
        void* library = dlopen("libcuda.so.1", RTLD_NOW);
        if (library == nullptr) {
            std::fprintf(stderr, "libcuda.so.1 was not found; install the NVIDIA driver\n");
            std::exit(2);
        }
        find(library, "cuInit", init);
        find(library, "cuDevicePrimaryCtxRetain", retain);
        find(library, "cuCtxSetCurrent", set_current);
        find(library, "cuStreamCreate", stream_create);
        find(library, "cuStreamSynchronize", stream_synchronize);
        find(library, "cuModuleLoadData", load);
        find(library, "cuModuleGetFunction", get_function);
        find(library, "cuMemAlloc_v2", allocate);
        find(library, "cuLaunchKernel", launch);
        find(library, "cuStreamBeginCapture_v2", begin_capture);
        find(library, "cuStreamEndCapture", end_capture);
        find(library, "cuGraphInstantiateWithFlags", instantiate);
    }
    int (*init)(unsigned);
    int (*retain)(CUctx_st**, int);
    int (*set_current)(CUctx_st*);
    int (*stream_create)(CUstream_st**, unsigned);
    int (*stream_synchronize)(CUstream_st*);
    int (*load)(CUmod_st**, const void*);
    int (*get_function)(CUfunc_st**, CUmod_st*, const char*);
    int (*allocate)(unsigned long long*, std::size_t);
    int (*launch)(CUfunc_st*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream_st*,
                  void**, void**);
    int (*begin_capture)(CUstream_st*, int);
    int (*end_capture)(CUstream_st*, CUgraph_st**);
    int (*instantiate)(CUgraphExec_st**, CUgraph_st*, unsigned long long);
};

/// Ends the program with one sentence when a call failed.
inline void check(int result, const char* call) {
    if (result != 0) {
        std::fprintf(stderr, "%s failed with CUDA error %d\n", call, result);
        std::exit(2);
    }
}

/// A device, a stream, some memory, and one kernel that reads `n` floats: x[i] = w[i] * x[i].
struct Gpu {
    Driver cuda;
    CUctx_st* context = nullptr;
    CUstream_st* stream = nullptr;
    CUfunc_st* kernel = nullptr;
    unsigned long long x = 0, weights = 0;

    explicit Gpu(std::size_t floats) {
        check(cuda.init(0), "cuInit");
        check(cuda.retain(&context, 0), "cuDevicePrimaryCtxRetain");
        check(cuda.set_current(context), "cuCtxSetCurrent");
        check(cuda.stream_create(&stream, 1), "cuStreamCreate");
        CUmod_st* module = nullptr;
        check(cuda.load(&module, scale_ptx), "cuModuleLoadData");
        check(cuda.get_function(&kernel, module, "scale"), "cuModuleGetFunction");
        check(cuda.allocate(&x, floats * sizeof(float)), "cuMemAlloc");
        check(cuda.allocate(&weights, floats * sizeof(float)), "cuMemAlloc");
    }
    /// Enqueues the kernel over `floats` elements, a multiple of 256.
    void run(unsigned floats) {
        void* params[] = {&x, &weights};
        check(cuda.launch(kernel, floats / 256, 1, 1, 256, 1, 1, 0, stream, params, nullptr), "cuLaunchKernel");
    }
    void wait() { check(cuda.stream_synchronize(stream), "cuStreamSynchronize"); }

    static constexpr const char* scale_ptx = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 w)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<4>;
    .reg .b64 %d<8>;
    ld.param.u64 %d1, [x];
    ld.param.u64 %d2, [w];
    cvta.to.global.u64 %d1, %d1;
    cvta.to.global.u64 %d2, %d2;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %d3, %r4, 4;
    add.s64 %d4, %d1, %d3;
    add.s64 %d5, %d2, %d3;
    ld.global.f32 %f1, [%d4];
    ld.global.f32 %f2, [%d5];
    mul.f32 %f3, %f1, %f2;
    st.global.f32 [%d4], %f3;
    ret;
}
)";
};

} // namespace small_cuda
