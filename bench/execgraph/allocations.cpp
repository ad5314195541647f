// SPDX-License-Identifier: Apache-2.0
#include "execgraph/allocations.hpp"

#include <algorithm>
#include <cstdlib>
#include <malloc.h>
#include <new>

namespace {

std::size_t held_bytes = 0;
std::size_t peak_bytes = 0;

} // namespace

namespace bench::allocations {

std::size_t held() { return held_bytes; }
std::size_t peak() { return peak_bytes; }
void forget_peak() { peak_bytes = held_bytes; }

void keep_memory() {
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
}

} // namespace bench::allocations

void* operator new(std::size_t size) {
    void* memory = std::malloc(std::max<std::size_t>(size, 1));
    if (memory == nullptr) {
        std::abort();
    }
    held_bytes += malloc_usable_size(memory);
    peak_bytes = std::max(peak_bytes, held_bytes);
    return memory;
}

void operator delete(void* memory) noexcept {
    held_bytes -= memory == nullptr ? 0 : malloc_usable_size(memory);
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
