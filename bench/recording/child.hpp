// SPDX-License-Identifier: Apache-2.0
// Work in a process of its own, so that its time and memory are its own. One thread.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "recording/outcome.hpp"

namespace bench {

inline double now_ns() {
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Child {
    double seconds = 0;
    double cpu_seconds = 0;
    double peak_mib = 0; // of memory, the program itself included
};

/// `work` returns whether it succeeded; `name`, for the sentence where it did not.
template <class Work>
Child in_child(const char* name, Work work) {
    std::fflush(nullptr);
    const double begin = now_ns();
    const pid_t child = fork();
    if (child == 0) {
        _exit(work() ? 0 : 1);
    }
    int status = 0;
    rusage usage{};
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0) {
        stop(fmt::format("{} failed on a recording of this benchmark; run its tests to see why", name));
    }
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {(now_ns() - begin) * 1e-9, seconds(usage.ru_utime) + seconds(usage.ru_stime),
            static_cast<double>(usage.ru_maxrss) / 1024};
}

} // namespace bench
