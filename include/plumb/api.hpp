// SPDX-License-Identifier: Apache-2.0
// What every public header needs before anything else: symbol visibility and the ABI namespace.
// Pure macros; no state, no thread rule.
#pragma once

#if defined(_WIN32)
#define PLUMB_API
#else
#define PLUMB_API __attribute__((visibility("default")))
#endif

/// The double that is no number, without the 970 lines of <limits>.
#define PLUMB_NAN __builtin_nan("")

#if defined(__GNUC__)
#define PLUMB_LIKELY(x) __builtin_expect(!!(x), 1)
#define PLUMB_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define PLUMB_ALWAYS_INLINE inline __attribute__((always_inline))
#define PLUMB_NOINLINE __attribute__((noinline))
#else
#define PLUMB_LIKELY(x) (x)
#define PLUMB_UNLIKELY(x) (x)
#define PLUMB_ALWAYS_INLINE inline
#define PLUMB_NOINLINE
#endif
