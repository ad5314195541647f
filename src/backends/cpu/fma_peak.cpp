// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/fma_peak.hpp"

#include <array>
#include <chrono>
#include <numeric>
#include <vector>

#include "base/cpu_features.hpp"

// Sets that would not beat these by much, or whose vectors have no fixed length.
#define HWY_DISABLED_TARGETS \
    (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// Highway compiles the loop once per instruction set, by including that very file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/fma_peak.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, as Highway wants it.
#include "backends/cpu/fma_peak-inl.hpp"

#if HWY_ONCE
namespace plumb::backends::cpu {
namespace {

double plain_multiply_adds(std::size_t rounds, float* sink) {
    std::array<float, 16> sums;
    std::iota(sums.begin(), sums.end(), *sink);
    for (std::size_t i = 0; i < rounds; ++i) {
        for (float& sum : sums) {
            sum = sum * 0.5F + 1.0F;
        }
    }
    for (const float sum : sums) {
        *sink += sum;
    }
    return 2.0 * static_cast<double>(sums.size()) * static_cast<double>(rounds);
}

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// So many rounds take about `wanted` seconds.
std::size_t rounds_for(MultiplyAdds run, double wanted) {
    float sink = 1;
    std::size_t rounds = 1024;
    for (;;) {
        const double begin = seconds();
        run(rounds, &sink);
        const double took = seconds() - begin;
        if (took > wanted / 10 || rounds > (std::size_t{1} << 40)) {
            return static_cast<std::size_t>(static_cast<double>(rounds) * wanted / took) + 1;
        }
        rounds *= 4;
    }
}

} // namespace

MultiplyAdds widest_multiply_adds() noexcept {
#if HWY_ARCH_X86
    // The test looks at the operating system too; Highway's would be a library to link.
#if HWY_TARGETS & HWY_AVX3
    if (PLUMB_CPU_HAS(AVX512F, "avx512f") && PLUMB_CPU_HAS(AVX512VL, "avx512vl") &&
        PLUMB_CPU_HAS(AVX512DQ, "avx512dq") && PLUMB_CPU_HAS(AVX512BW, "avx512bw") && PLUMB_CPU_HAS(FMA, "fma")) {
        return &N_AVX3::multiply_adds;
    }
#endif
#if HWY_TARGETS & HWY_AVX2
    if (PLUMB_CPU_HAS(AVX2, "avx2") && PLUMB_CPU_HAS(FMA, "fma") && PLUMB_CPU_HAS(BMI2, "bmi2")) {
        return &N_AVX2::multiply_adds;
    }
#endif
#elif HWY_TARGETS & HWY_NEON
    return &N_NEON::multiply_adds;
#endif
    return &plain_multiply_adds;
}

double measure_multiply_adds(Workers& workers, unsigned threads) {
    constexpr double pass_seconds = 0.02;
    const MultiplyAdds run = widest_multiply_adds();
    const std::size_t rounds = rounds_for(run, pass_seconds);
    struct alignas(64) Done {
        double operations = 0;
        float sink = 1;
    };
    std::vector<Done> done(threads);
    const double begin = seconds();
    workers.run(threads, [&](unsigned index) { done[index].operations = run(rounds, &done[index].sink); });
    const double took = seconds() - begin;
    double operations = 0;
    for (const Done& one : done) {
        operations += one.operations;
        [[maybe_unused]] volatile float used = one.sink;
    }
    return operations / took / 1e9;
}

} // namespace plumb::backends::cpu
#endif
