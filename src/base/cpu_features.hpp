// SPDX-License-Identifier: Apache-2.0
// PLUMB_CPU_HAS(AVX2, "avx2"): whether the processor has an instruction set and the system lets it be used; the name is that of the C
// library, and of the compiler where the C library does not tell. The compiler's own test comes with a constructor that asks the
// processor some twenty times whenever a program starts: 0.2 ms on a virtual machine. The C library has asked already.
// No state, no thread rule.
#pragma once

// The header is C: clang does not know its _Bool.
#if __has_include(<sys/platform/x86.h>) && !defined(__clang__)
#include <sys/platform/x86.h>
#define PLUMB_CPU_HAS(feature, word) CPU_FEATURE_ACTIVE(feature)
#else
#define PLUMB_CPU_HAS(feature, word) __builtin_cpu_supports(word)
#endif
