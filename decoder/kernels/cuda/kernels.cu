// SPDX-License-Identifier: Apache-2.0
// The device form of kernels.hpp.
#include <cuda_fp16.h>

#include "decoder/kernels/cuda/best_kernels.hpp"
#include "decoder/kernels/cuda/fill.hpp"
#include "decoder/kernels/cuda/kernels.hpp"
#include "decoder/kernels/cuda/split_kernels.hpp"

namespace plumb::decoder::cuda {
namespace {

extern __shared__ float shared_floats[];

struct GpuLane {
    static __device__ unsigned thread() { return threadIdx.x; }
    static __device__ unsigned threads() { return blockDim.x; }
    static __device__ unsigned block_x() { return blockIdx.x; }
    static __device__ unsigned block_y() { return blockIdx.y; }
    static __device__ unsigned block_z() { return blockIdx.z; }
    template <class T>
    static __device__ T load(std::uint64_t address) {
        return *reinterpret_cast<const T*>(address);
    }
    template <class T>
    static __device__ void store(std::uint64_t address, T value) {
        *reinterpret_cast<T*>(address) = value;
    }
    /// Past the first-level cache, which is the input's.
    template <class T>
    static __device__ T stream(std::uint64_t address) {
        T out;
        if constexpr (sizeof(T) == 16) {
            asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
                : "l"(address));
        } else {
            static_assert(sizeof(T) == 8);
            asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(out.x), "=r"(out.y) : "l"(address));
        }
        return out;
    }
    static __device__ float from_half(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }
    static __device__ std::uint16_t to_half(float value) { return __half_as_ushort(__float2half_rn(value)); }
    static __device__ std::uint32_t bits_of(float value) { return __float_as_uint(value); }
    static __device__ float shared(unsigned i) { return shared_floats[i]; }
    static __device__ void set_shared(unsigned i, float value) { shared_floats[i] = value; }
    static __device__ void sync() { __syncthreads(); }
    template <class T>
    static __device__ T exchange(T value, unsigned mask) {
        return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
    }
    static __device__ float sum(float value) {
        for (unsigned mask = 16; mask > 0; mask /= 2) {
            value += exchange(value, mask);
        }
        return value;
    }
};

/// A kernel that was launched while the one before it ended waits for that one, with all that it wrote, and so for all
/// before; then the next may come. Nothing where it was launched otherwise.
__device__ __forceinline__ void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

__device__ __forceinline__ unsigned long long global_nanoseconds() {
    unsigned long long out;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(out));
    return out;
}

/// A StampSlot (stamps.hpp) at `slot`, or none where it is 0. Nothing waits for the atomics.
__device__ __forceinline__ void stamp_begin(std::uint64_t slot) {
    if (slot != 0 && threadIdx.x == 0) {
        atomicMax(reinterpret_cast<unsigned long long*>(slot), ~global_nanoseconds());
    }
}
__device__ __forceinline__ void stamp_end(std::uint64_t slot) {
    if (slot != 0) {
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicMax(reinterpret_cast<unsigned long long*>(slot) + 1, global_nanoseconds());
        }
    }
}

} // namespace
} // namespace plumb::decoder::cuda

#define PLUMB_ENTRY(name, arguments, threads, ...)                                                            \
    extern "C" __global__ void __launch_bounds__(threads)                                                     \
        plumb_decoder_##name(const __grid_constant__ plumb::decoder::cuda::arguments a, std::uint64_t slot) { \
        plumb::decoder::cuda::wait_for_kernel_before();                                                       \
        plumb::decoder::cuda::GpuLane gpu;                                                                    \
        plumb::decoder::cuda::stamp_begin(slot);                                                              \
        plumb::decoder::cuda::__VA_ARGS__(gpu, a);                                                            \
        plumb::decoder::cuda::stamp_end(slot);                                                                \
    }
#define PLUMB_PLAIN_ENTRY(name, arguments, threads) PLUMB_ENTRY(name, arguments, threads, name)
#define PLUMB_TYPED_ENTRIES(type)                                                                        \
    PLUMB_ENTRY(embed_##type, EmbedArgs, element_threads, embed<plumb::decoder::Type::type>)             \
    PLUMB_ENTRY(gemv_##type##_1, ProductArgs, gemv_threads, gemv<plumb::decoder::Type::type, 1>)         \
    PLUMB_ENTRY(gemv_##type##_4, ProductArgs, gemv_threads, gemv<plumb::decoder::Type::type, gemv_rows>) \
    PLUMB_ENTRY(tile_##type, ProductArgs, tile_threads, tile<plumb::decoder::Type::type>)

using namespace plumb::decoder::cuda;
PLUMB_CUDA_PLAIN_KERNELS(PLUMB_PLAIN_ENTRY)
PLUMB_CUDA_TYPES(PLUMB_TYPED_ENTRIES)
