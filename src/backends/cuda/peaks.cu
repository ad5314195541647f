// SPDX-License-Identifier: Apache-2.0
// The kernels that find a device's peaks; src/backends/peak_measurement.hpp says what they compute.
#include <cstdint>

namespace {

constexpr unsigned threads = 256; // threads_of_block in peak_kernels.hpp

} // namespace

extern "C" __global__ void __launch_bounds__(threads)
    plumb_peak_fill(std::uint32_t* memory, std::uint32_t words, std::uint32_t factor) {
    const std::uint64_t step = std::uint64_t{gridDim.x} * threads;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * threads + threadIdx.x; i < words; i += step)
        memory[i] = static_cast<std::uint32_t>(i) * factor + 1;
}

/// A block reads a part of its own, its threads side by side; eight loads are on their way at once.
extern "C" __global__ void __launch_bounds__(threads)
    plumb_peak_read(const uint4* __restrict__ memory, std::uint32_t* sums, std::uint32_t of_block) {
    const uint4* at = memory + std::uint64_t{blockIdx.x} * of_block + threadIdx.x;
    const uint4* const end = memory + (std::uint64_t{blockIdx.x} + 1) * of_block;
    uint4 a[8] = {};
    for (; at < end; at += 8 * threads) {
#pragma unroll
        for (unsigned i = 0; i < 8; ++i) {
            const uint4 read = __ldcs(at + i * threads); // each is needed once
            a[i].x += read.x;
            a[i].y += read.y;
            a[i].z += read.z;
            a[i].w += read.w;
        }
    }
    std::uint32_t sum = 0;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i)
        sum += a[i].x + a[i].y + a[i].z + a[i].w;
    sums[blockIdx.x * threads + threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(threads)
    plumb_peak_multiply_adds(float* sums, float seed, std::uint32_t rounds) {
    constexpr unsigned chains = 12;
    const std::uint32_t item = blockIdx.x * threads + threadIdx.x;
    float x[chains]; // chains that begin alike are one chain to a compiler
#pragma unroll
    for (unsigned i = 0; i < chains; ++i)
        x[i] = seed + 256.0f * static_cast<float>(item % 64) + static_cast<float>(i);
#pragma unroll 8
    for (std::uint32_t round = 0; round < rounds; ++round) {
#pragma unroll
        for (unsigned i = 0; i < chains; ++i)
            x[i] = __fmaf_rn(x[i], 0.5f, 1.0f);
    }
    float sum = 0;
#pragma unroll
    for (unsigned i = 0; i < chains; ++i)
        sum += x[i];
    sums[item] = sum;
}
