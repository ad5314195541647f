// SPDX-License-Identifier: Apache-2.0
// Which instruction sets this processor has, as Highway asks for it in hwy/targets.h. Its own library answers that too, and
// measures a clock for 3.5 ms whenever a program that links it starts, whatever the program then does.
#include <atomic>
#include <cstdint>

#include <hwy/targets.h>

namespace hwy {
namespace {

std::atomic<std::int64_t> only_these{0};

std::int64_t targets_of_this_processor() {
    std::int64_t found = HWY_STATIC_TARGET | HWY_SCALAR | HWY_EMU128;
#if HWY_ARCH_X86
    // The compiler's own test looks at the operating system too.
    if (__builtin_cpu_supports("ssse3")) {
        found |= HWY_SSSE3;
    }
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("aes")) {
        found |= HWY_SSE4;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
        __builtin_cpu_supports("bmi2")) {
        found |= HWY_AVX2;
    }
    if ((found & HWY_AVX2) != 0 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd")) {
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
