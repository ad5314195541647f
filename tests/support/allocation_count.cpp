// SPDX-License-Identifier: Apache-2.0
#include "allocation_count.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> live_bytes{0};
std::atomic<std::size_t> peak_bytes{0};
std::atomic<std::size_t> calls{0};

} // namespace

// Both ways in, for both ways out are the same: a sort's temporary buffer comes by the one that does not throw.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    ++calls;
    void* memory = std::malloc(size);
    if (memory != nullptr) {
        const std::size_t now = live_bytes += malloc_usable_size(memory);
        peak_bytes = std::max(peak_bytes.load(), now);
    }
    return memory;
}

void* operator new(std::size_t size) {
    void* memory = operator new(size, std::nothrow);
    if (memory == nullptr) {
        std::abort();
    }
    return memory;
}

void operator delete(void* memory) noexcept {
    ++calls;
    if (memory != nullptr) {
        live_bytes -= malloc_usable_size(memory);
        std::free(memory);
    }
}

void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }

namespace plumb {

std::size_t start_peak() {
    peak_bytes = live_bytes.load();
    return live_bytes;
}

std::size_t peak() { return peak_bytes; }

std::size_t allocator_calls() { return calls; }

} // namespace plumb
