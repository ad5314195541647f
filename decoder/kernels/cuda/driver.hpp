// SPDX-License-Identifier: Apache-2.0
// The calls of the CUDA driver that the decoder makes, found in libcuda.so.1 when a device is asked for: nothing is linked,
// and no CUDA header is needed. The table lives as long as the process; any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plumb/result.hpp"

struct CUctx_st;
struct CUstream_st;
struct CUmod_st;
struct CUfunc_st;

namespace plumb::decoder::cuda {

/// CUlaunchAttribute, with its one value that is used.
struct LaunchExtension {
    int id = 0;
    int pad = 0;
    union {
        unsigned char bytes[64];
        int allowed;
    } value = {};
};
/// CUlaunchConfig.
struct ExtendedLaunch {
    unsigned grid_x = 1, grid_y = 1, grid_z = 1;
    unsigned block_x = 1, block_y = 1, block_z = 1;
    unsigned shared_bytes = 0;
    CUstream_st* stream = nullptr;
    LaunchExtension* properties = nullptr;
    unsigned property_count = 0;
};

} // namespace plumb::decoder::cuda

/// X(name, symbol, (parameters)): as cuda.h declares them; the symbol's suffix tells the signature.
#define PLUMB_DECODER_CUDA_CALLS(X)                                                                                   \
    X(init, cuInit, (unsigned flags))                                                                                 \
    X(version, cuDriverGetVersion, (int* version))                                                                    \
    X(error_name, cuGetErrorName, (int error, const char** name))                                                     \
    X(device_count, cuDeviceGetCount, (int* count))                                                                   \
    X(device_get, cuDeviceGet, (int* device, int ordinal))                                                            \
    X(device_name, cuDeviceGetName, (char* name, int length, int device))                                             \
    X(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, int device))                                \
    X(context_retain, cuDevicePrimaryCtxRetain, (CUctx_st * *context, int device))                                    \
    X(context_push, cuCtxPushCurrent_v2, (CUctx_st * context))                                                        \
    X(context_pop, cuCtxPopCurrent_v2, (CUctx_st * *context))                                                         \
    X(stream_create, cuStreamCreate, (CUstream_st * *stream, unsigned flags))                                         \
    X(stream_destroy, cuStreamDestroy_v2, (CUstream_st * stream))                                                     \
    X(stream_wait, cuStreamSynchronize, (CUstream_st * stream))                                                       \
    X(module_load, cuModuleLoadData, (CUmod_st * *module, const void* image))                                         \
    X(module_unload, cuModuleUnload, (CUmod_st * module))                                                             \
    X(function_get, cuModuleGetFunction, (CUfunc_st * *function, CUmod_st * module, const char* name))                \
    X(memory_allocate, cuMemAlloc_v2, (std::uint64_t * address, std::size_t bytes))                                   \
    X(memory_free, cuMemFree_v2, (std::uint64_t address))                                                             \
    X(memory_zero, cuMemsetD32Async, (std::uint64_t address, unsigned value, std::size_t count, CUstream_st* stream)) \
    X(copy_in, cuMemcpyHtoDAsync_v2, (std::uint64_t to, const void* from, std::size_t bytes, CUstream_st* stream))    \
    X(copy_out, cuMemcpyDtoHAsync_v2, (void* to, std::uint64_t from, std::size_t bytes, CUstream_st* stream))         \
    X(launch, cuLaunchKernel,                                                                                         \
      (CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,   \
       unsigned block_z, unsigned shared_bytes, CUstream_st* stream, void** parameters, void** extra))                \
    X(launch_with, cuLaunchKernelEx,                                                                                  \
      (const plumb::decoder::cuda::ExtendedLaunch* shape, CUfunc_st* function, void** parameters, void** extra))

namespace plumb::decoder::cuda {

struct CudaDriver {
#define PLUMB_DECODER_CUDA_MEMBER(name, symbol, parameters) int(*name) parameters = nullptr;
    PLUMB_DECODER_CUDA_CALLS(PLUMB_DECODER_CUDA_MEMBER)
#undef PLUMB_DECODER_CUDA_MEMBER
};

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr int attribute_processors = 16; // multiprocessors of the device
inline constexpr int attribute_capability = 75; // the major one
inline constexpr int property_programmatic = 6; // programmatic stream serialization
inline constexpr int version_programmatic = 12000;

/// Error unavailable says what is missing and what to do.
const Result<CudaDriver>& driver();

} // namespace plumb::decoder::cuda
