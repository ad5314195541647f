// SPDX-License-Identifier: Apache-2.0
#include "decoder/kernels/cpu/team.hpp"

#include <sched.h>

#include <cstddef>
#include <thread>

// libgomp's own interface, as its manual documents it: the same team for every compiler, where `-fopenmp` of clang would
// bring a second OpenMP runtime beside the one that oneDNN has loaded.
extern "C" {
void GOMP_parallel(void (*function)(void*), void* data, unsigned threads, unsigned flags);
int omp_get_thread_num(void);
int omp_get_num_threads(void);
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);
}

namespace plumb::decoder::cpu {
namespace {

struct Call {
    void (*body)(int, int, void*);
    void* data;
};

} // namespace

int available_cores() noexcept {
    cpu_set_t set;
    if (::sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    const unsigned count = std::thread::hardware_concurrency();
    return count == 0 ? 1 : static_cast<int>(count);
}

int set_team_size(int threads) noexcept {
    const int before = omp_get_max_threads();
    if (before != threads)
        omp_set_num_threads(threads);
    return before;
}

void run_team(void (*body)(int, int, void*), void* data) noexcept {
    Call call{body, data};
    GOMP_parallel(
        [](void* raw) {
            const Call& part = *static_cast<Call*>(raw);
            part.body(omp_get_thread_num(), omp_get_num_threads(), part.data);
        },
        &call, 0, 0);
}

} // namespace plumb::decoder::cpu
