// SPDX-License-Identifier: Apache-2.0
// For programs that read recordings and end: what they free they soon want again.
#pragma once

#include <cstdlib> // which names the C library

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace plumb::cli {

/// Freed memory stays with the process. The system would have to clear each page again before it is written: a third of the time of an
/// export of many short recordings.
inline void keep_freed_memory() noexcept {
#if defined(__GLIBC__)
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 32 << 20); // the largest that it takes
#endif
}

} // namespace plumb::cli
