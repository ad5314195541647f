// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/onednn.hpp"

#include <dlfcn.h>

#include "decoder/kernels/cpu/openmp.hpp"

#define PLUMB_WORD(x) #x
#define PLUMB_SONAME(major) "libdnnl.so." PLUMB_WORD(major)

namespace plumb::decoder::cpu {

namespace {

void* library() noexcept {
    // Of the version whose headers were compiled in. It stays open.
    static void* const opened = ::dlopen(PLUMB_SONAME(DNNL_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
    return opened;
}

} // namespace

bool has_onednn() noexcept { return library() != nullptr; }

void* detail::onednn_symbol(const char* name) noexcept {
    return library() != nullptr ? ::dlsym(library(), name) : nullptr;
}

int matrix_library_threads() noexcept {
    static const auto threads = reinterpret_cast<int (*)()>(detail::onednn_symbol("omp_get_max_threads"));
    return threads != nullptr ? threads() : 1;
}

void set_matrix_library_threads(int threads) noexcept {
    static const auto set = reinterpret_cast<void (*)(int)>(detail::onednn_symbol("omp_set_num_threads"));
    if (set != nullptr) {
        set(threads);
    }
}

} // namespace plumb::decoder::cpu
