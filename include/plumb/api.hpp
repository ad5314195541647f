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

/// Of variables that each thread has: they are found without a call, and the room for them is scarce where a library is loaded late.
/// libplumb-attach, which must always load, is compiled with another word.
#if !defined(PLUMB_TLS_MODEL)
#define PLUMB_TLS_MODEL __attribute__((tls_model("initial-exec")))
#endif

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
