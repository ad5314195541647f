// SPDX-License-Identifier: Apache-2.0
// The fingerprint kernels. All that a check needs on the device lies in this module: it is loaded once per context and
// stays, for captured graphs go on launching its kernels. Memory that modules bring along begins as zeros.
#include "fingerprint/cuda/kernel_body.hpp"

namespace plumb::fingerprint {
namespace {

__device__ SiteState plumb_sites[most_sites];
__device__ std::uint64_t plumb_tags[most_groups];
__device__ std::uint64_t plumb_scratch[scratch_words];
__shared__ double shared_words[kernel_warps * shared_of_warp];
__shared__ unsigned came_last;

struct Gpu {
    static __device__ unsigned thread() { return threadIdx.x; }
    static __device__ unsigned block() { return blockIdx.x; }
    static __device__ unsigned blocks() { return gridDim.x; }
    static __device__ double exchange(double value, unsigned mask) {
        return __shfl_xor_sync(0xffffffffu, value, static_cast<int>(mask));
    }
    static __device__ std::uint64_t exchange(std::uint64_t value, unsigned mask) {
        return __shfl_xor_sync(0xffffffffu, static_cast<unsigned long long>(value), static_cast<int>(mask));
    }
    static __device__ void sync_block() { __syncthreads(); }
    static __device__ double* shared() { return shared_words; }
    template <class T>
    static __device__ T load(std::uint64_t address, std::int64_t index) {
        return reinterpret_cast<const T*>(address)[index];
    }
    /// Volatile: another block wrote it, and this one's first-level cache knows nothing of that.
    static __device__ std::uint64_t scratch(std::uint32_t word) {
        return *static_cast<volatile std::uint64_t*>(plumb_scratch + word);
    }
    static __device__ void put_scratch(std::uint32_t word, std::uint64_t value) { plumb_scratch[word] = value; }
    static __device__ void put(std::uint64_t address, std::uint64_t value) {
        *reinterpret_cast<volatile std::uint64_t*>(address) = value;
    }
    static __device__ void release() { __threadfence(); }
    static __device__ void release_to_host() { __threadfence_system(); }
    static __device__ SiteState& state(std::uint32_t site) { return plumb_sites[site]; }
    static __device__ std::uint64_t tag(std::uint32_t group) { return plumb_tags[group]; }
    /// True for every thread of the last block; the ticket is 0 again then.
    static __device__ bool arrive_last(std::uint32_t site) {
        if (threadIdx.x == 0) {
            came_last = atomicInc(&plumb_sites[site].ticket, gridDim.x - 1) == gridDim.x - 1 ? 1 : 0;
            __threadfence();
        }
        __syncthreads();
        return came_last != 0;
    }
};

} // namespace
} // namespace plumb::fingerprint

extern "C" __global__ void __launch_bounds__(plumb::fingerprint::kernel_threads)
    plumb_fingerprint(const __grid_constant__ plumb::fingerprint::KernelParameters parameters) {
    plumb::fingerprint::Gpu gpu;
    plumb::fingerprint::FingerprintKernel<plumb::fingerprint::Gpu>{gpu, parameters}.run();
}

/// One thread: the replays of a graph that follow in this stream belong to launch `tag`.
extern "C" __global__ void plumb_fingerprint_tag(std::uint32_t group, std::uint64_t tag) {
    plumb::fingerprint::plumb_tags[group] = tag;
}
