// SPDX-License-Identifier: Apache-2.0
#include "fingerprint/kernels.hpp"

#include "base/cpu_features.hpp"

// Sets that would not beat these by much, or whose vectors have no fixed length.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// Highway compiles what follows once per instruction set, by including this very file again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "fingerprint/kernels_vector.cpp"
#include <hwy/foreach_target.h>

// After foreach_target.h, as Highway wants it.
#include "fingerprint/kernels_vector-inl.hpp"

#if HWY_ONCE
namespace plumb::fingerprint {
namespace {

#if HWY_ARCH_X86
// What Highway's HWY_AVX3, HWY_AVX2 and HWY_SSE4 may use. The test looks at the operating system too. Its
// library would be a link dependency for every user of ours.
bool has_sse4() {
    return PLUMB_CPU_HAS(SSE4_2, "sse4.2") && PLUMB_CPU_HAS(PCLMULQDQ, "pclmul") && PLUMB_CPU_HAS(AES, "aes");
}
bool has_avx2() {
    return has_sse4() && PLUMB_CPU_HAS(AVX2, "avx2") && PLUMB_CPU_HAS(FMA, "fma") && PLUMB_CPU_HAS(BMI1, "bmi") &&
           PLUMB_CPU_HAS(BMI2, "bmi2");
}
bool has_avx3() {
    return has_avx2() && PLUMB_CPU_HAS(AVX512F, "avx512f") && PLUMB_CPU_HAS(AVX512VL, "avx512vl") &&
           PLUMB_CPU_HAS(AVX512DQ, "avx512dq") && PLUMB_CPU_HAS(AVX512BW, "avx512bw");
}
#endif

} // namespace

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> found;
#if HWY_TARGETS & HWY_AVX3
    if (has_avx3()) {
        found.push_back(&N_AVX3::kernels);
    }
#endif
#if HWY_TARGETS & HWY_AVX2
    if (has_avx2()) {
        found.push_back(&N_AVX2::kernels);
    }
#endif
#if HWY_TARGETS & HWY_SSE4
    if (has_sse4()) {
        found.push_back(&N_SSE4::kernels);
    }
#endif
#if HWY_TARGETS & HWY_NEON
    found.push_back(&N_NEON::kernels);
#endif
    found.push_back(&plain_kernels());
    return found;
}

const Kernels& best_kernels() noexcept {
    static const Kernels& best = *available_kernels().front();
    return best;
}

} // namespace plumb::fingerprint
#endif
