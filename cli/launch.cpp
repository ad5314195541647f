// SPDX-License-Identifier: Apache-2.0
#include "cli/launch.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plumb::cli {

namespace {

constexpr std::array passed_on = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
std::atomic<pid_t> child{0};
static_assert(std::atomic<pid_t>::is_always_lock_free, "a signal handler reads it");

/// What a terminal sends goes to the whole group, so the child has it already.
void pass_on(int signal, siginfo_t* info, void*) {
    const pid_t to = child.load(std::memory_order_relaxed);
    if (to > 0 && info->si_code <= 0) {
        const int before = errno;
        ::kill(to, signal);
        errno = before;
    }
}

using Handlers = std::array<struct sigaction, passed_on.size()>;

Handlers catch_signals() {
    Handlers before;
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
        ::sigaction(passed_on[i], &action, &before[i]);
    }
    return before;
}

void restore_signals(const Handlers& before) {
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
        ::sigaction(passed_on[i], &before[i], nullptr);
    }
}

[[noreturn]] void become(const std::vector<std::string>& command, const Environment& environment, int told) {
    for (const auto& [name, value] : environment) {
        ::setenv(name.c_str(), value.c_str(), 1);
    }
    std::vector<char*> words;
    for (const std::string& word : command) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    ::execvp(words[0], words.data());
    const int reason = errno;
    (void)!::write(told, &reason, sizeof reason);
    ::_exit(127);
}

} // namespace

Result<int> run_child(const std::vector<std::string>& command, const Environment& environment) {
    int failed[2]; // the child writes why it could not start; a successful exec closes it
    if (::pipe2(failed, O_CLOEXEC) != 0) {
        return Error{ErrorCode::unavailable, "cannot start " + command.front() + ": " + std::strerror(errno)};
    }
    sigset_t all;
    sigset_t before_block;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before_block); // none gets lost between fork and the handlers
    const Handlers before = catch_signals();
    const pid_t made = ::fork();
    if (made == 0) {
        restore_signals(before);
        ::sigprocmask(SIG_SETMASK, &before_block, nullptr);
        become(command, environment, failed[1]);
    }
    const int fork_error = errno;
    ::close(failed[1]);
    child.store(made, std::memory_order_relaxed);
    ::sigprocmask(SIG_SETMASK, &before_block, nullptr);
    int reason = made < 0 ? fork_error : 0;
    int status = 0;
    if (made > 0) {
        while (::read(failed[0], &reason, sizeof reason) < 0 && errno == EINTR) {
        }
        while (::waitpid(made, &status, 0) < 0 && errno == EINTR) {
        }
    }
    child.store(0, std::memory_order_relaxed);
    ::close(failed[0]);
    restore_signals(before);
    if (reason != 0) {
        return Error{ErrorCode::not_found, "cannot start " + command.front() + ": " + std::strerror(reason)};
    }
    return status;
}

int exit_code_of_status(int status) {
    constexpr int by_signal = 128;
    return WIFSIGNALED(status) ? by_signal + WTERMSIG(status) : WEXITSTATUS(status);
}

void end_as(int status) {
    if (!WIFSIGNALED(status)) {
        return;
    }
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none); // the child's core is the one that matters
    std::signal(WTERMSIG(status), SIG_DFL);
    ::raise(WTERMSIG(status));
}

} // namespace plumb::cli
