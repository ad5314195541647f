// SPDX-License-Identifier: Apache-2.0
#include "attach/start.hpp"

#include <chrono>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench::attach {

namespace {

double milliseconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) * 1e-3;
}

plumb::Status run_once(std::vector<const char*> words, Starts& starts) {
    words.push_back(nullptr);
    posix_spawn_file_actions_t silent;
    posix_spawn_file_actions_init(&silent);
    posix_spawn_file_actions_addopen(&silent, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const auto begin = std::chrono::steady_clock::now();
    pid_t made = 0;
    int status = -1;
    rusage used{};
    const bool well =
        posix_spawn(&made, words[0], &silent, nullptr, const_cast<char* const*>(words.data()), environ) == 0 &&
        wait4(made, &status, 0, &used) == made && status == 0;
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    posix_spawn_file_actions_destroy(&silent);
    if (!well) {
        return plumb::Error{plumb::ErrorCode::failed, std::string(words[0]) + " did not end well"};
    }
    starts.wall_ms.push_back(took.count());
    starts.cpu_ms.push_back(milliseconds(used.ru_utime) + milliseconds(used.ru_stime));
    return {};
}

} // namespace

plumb::Result<StartPairs> measure_starts(int pairs) {
    StartPairs starts;
    for (int n = 0; n < 2 * pairs; ++n) {
        const bool under = n % 4 == 1 || n % 4 == 2;
        const plumb::Status ran = under ? run_once({PLUMB_BENCH_COMMAND, "run", "--", "/bin/true"}, starts.under)
                                        : run_once({"/bin/true"}, starts.alone);
        if (!ran.ok()) {
            return ran.error();
        }
    }
    return starts;
}

} // namespace bench::attach
