// SPDX-License-Identifier: Apache-2.0
// oneDNN takes its threads from OpenMP; here the backend's own team deals the work, and each of its threads asks oneDNN
// for single-threaded products. Per calling thread.
#pragma once

namespace plumb::decoder::cpu {

/// Of the OpenMP library that oneDNN uses.
[[nodiscard]] int matrix_library_threads() noexcept;
void set_matrix_library_threads(int threads) noexcept;

/// From here on oneDNN uses the calling thread alone. Returns how many it used before.
inline int matrix_library_alone() noexcept {
    const int before = matrix_library_threads();
    if (before != 1) {
        set_matrix_library_threads(1);
    }
    return before;
}

} // namespace plumb::decoder::cpu
