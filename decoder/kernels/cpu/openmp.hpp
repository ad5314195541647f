// SPDX-License-Identifier: Apache-2.0
// oneDNN takes its threads from OpenMP; here the backend's own team deals the work, and each of its threads asks oneDNN
// for single-threaded products. Per calling thread.
#pragma once

// libgomp, which oneDNN has loaded. Declared here since <omp.h> exists for some compilers only.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace plumb::decoder::cpu {

/// From here on oneDNN uses the calling thread alone. Returns how many it used before.
inline int matrix_library_alone() noexcept {
    const int before = omp_get_max_threads();
    if (before != 1) {
        omp_set_num_threads(1);
    }
    return before;
}

} // namespace plumb::decoder::cpu
