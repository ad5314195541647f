// SPDX-License-Identifier: Apache-2.0
// The threads of the cpu backend: the same OpenMP team that the matrix library uses, so that two teams never fight for
// the cores. Used by one thread at a time.
#pragma once

#include <cstddef>

namespace plumb::decoder::cpu {

/// Cores this process may run on.
[[nodiscard]] int available_cores() noexcept;

/// The team's size of the calling thread; returns the size before.
int set_team_size(int threads) noexcept;

/// Runs body(thread, threads) on every thread of the team and waits for all.
void run_team(void (*body)(int thread, int threads, void* data), void* data) noexcept;

/// f(index) for 0 … count-1, dealt to the team in contiguous parts; on the caller alone where `parallel` is false.
template <class F>
void for_each_index(std::size_t count, bool parallel, F&& f) noexcept {
    if (!parallel || count < 2) {
        for (std::size_t i = 0; i < count; ++i)
            f(i, 0);
        return;
    }
    struct Work {
        std::size_t count;
        F* f;
    } work{count, &f};
    run_team(
        [](int thread, int threads, void* data) {
            const Work& part = *static_cast<Work*>(data);
            const auto index = static_cast<std::size_t>(thread);
            const auto team = static_cast<std::size_t>(threads);
            const std::size_t end = part.count * (index + 1) / team;
            for (std::size_t i = part.count * index / team; i < end; ++i)
                (*part.f)(i, thread);
        },
        &work);
}

} // namespace plumb::decoder::cpu
