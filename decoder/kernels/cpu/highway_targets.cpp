// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this processor has, as Highway asks for it in hwy/targets.h. Its own library answers that too, and
// measures a clock for 3.5 ms whenever a program that links it starts, whatever the program then does.
#include <atomic>
#include <cstdint>

#include <hwy/targets.h>

#if __has_include(<sys/platform/x86.h>) && !defined(__clang__) // which does not know the _Bool in it
#include <sys/platform/x86.h> // asked at the start of each program, as the compiler's own test would do once more
#define PLUMB_CPU_HAS(feature, word) CPU_FEATURE_ACTIVE(feature)
#else
#define PLUMB_CPU_HAS(feature, word) __builtin_cpu_supports(word)
#endif

namespace hwy {
namespace {

std::atomic<std::int64_t> only_these{0};

std::int64_t targets_of_this_processor() {
    std::int64_t found = HWY_STATIC_TARGET | HWY_SCALAR | HWY_EMU128;
#if HWY_ARCH_X86
    // The test looks at the operating system too.
    if (PLUMB_CPU_HAS(SSE4_2, "sse4.2") && PLUMB_CPU_HAS(PCLMULQDQ, "pclmul") && PLUMB_CPU_HAS(AES, "aes")) {
        found |= HWY_SSE4;
    }
    if (PLUMB_CPU_HAS(AVX2, "avx2") && PLUMB_CPU_HAS(FMA, "fma") && PLUMB_CPU_HAS(BMI1, "bmi") &&
        PLUMB_CPU_HAS(BMI2, "bmi2")) {
        found |= HWY_AVX2;
    }
    if ((found & HWY_AVX2) != 0 && PLUMB_CPU_HAS(AVX512F, "avx512f") && PLUMB_CPU_HAS(AVX512VL, "avx512vl") &&
        PLUMB_CPU_HAS(AVX512DQ, "avx512dq") && PLUMB_CPU_HAS(AVX512BW, "avx512bw") &&
        PLUMB_CPU_HAS(AVX512CD, "avx512cd")) {
        found |= HWY_AVX3;
    }
#endif
    return found;
}

} // namespace

std::int64_t SupportedTargets() {
    const std::int64_t only = only_these.load(std::memory_order_relaxed); // tests: no other thread computes then
    return only != 0 ? only : targets_of_this_processor();
}

void SetSupportedTargetsForTest(std::int64_t targets) { only_these.store(targets, std::memory_order_relaxed); }

ChosenTarget& GetChosenTarget() {
    static ChosenTarget chosen;
    return chosen;
}

} // namespace hwy
