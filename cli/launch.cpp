// SPDX-License-Identifier: Apache-2.0
#include "cli/launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace plumb::cli {

namespace {

/// Which are passed on to the child; and the first, by which a child that ends is kept until it was waited for.
constexpr std::array changed = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};
sigset_t ignored_here; // by ignore_signal(), where whoever started us did not
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

using Handlers = std::array<struct sigaction, changed.size()>;

/// What was ignored stays so, here and in the child (nohup); what was not, the child gets back by its exec.
Handlers catch_signals() {
    Handlers before;
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < changed.size(); ++i) {
        ::sigaction(changed[i], nullptr, &before[i]);
        if (changed[i] == SIGCHLD) {
            std::signal(SIGCHLD, SIG_DFL); // where it is ignored the system forgets how a child ended
        } else if (before[i].sa_handler != SIG_IGN) {
            ::sigaction(changed[i], &action, nullptr);
        }
    }
    return before;
}

void restore_signals(const Handlers& before) {
    for (std::size_t i = 0; i < changed.size(); ++i) {
        ::sigaction(changed[i], &before[i], nullptr);
    }
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
    std::vector<char*> pointers;
    for (std::string& word : words) {
        pointers.push_back(word.data());
    }
    pointers.push_back(nullptr);
    return pointers;
}

/// This process's own, with these in place of what has their names.
std::vector<std::string> with(const Environment& added) {
    std::vector<std::string> all;
    for (char** own = environ; *own != nullptr; ++own) {
        const std::string_view variable(*own);
        const std::string_view name = variable.substr(0, variable.find('='));
        if (std::none_of(added.begin(), added.end(), [name](const auto& ours) { return ours.first == name; })) {
            all.emplace_back(variable);
        }
    }
    for (const auto& [name, value] : added) {
        all.push_back(name + '=' + value);
    }
    return all;
}

/// The child becomes the command, with signals as this process got them. Returns why not. Nothing else may be done here: it still runs in
/// our memory.
int become(char* const* command, char* const* variables, const Handlers& handlers, const sigset_t& blocked) {
    restore_signals(handlers);
    for (int signal = 1; signal < NSIG; ++signal) {
        if (sigismember(&ignored_here, signal) == 1) {
            std::signal(signal, SIG_DFL);
        }
    }
    ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
    ::execvpe(command[0], command, variables); // a script that names no interpreter is run by a shell, as a shell does
    return errno;
}

/// 0, or why not. By vfork(), since posix_spawn() cannot leave a child a signal ignored that is not ignored here.
int spawn(pid_t& made, std::vector<std::string> command, const Environment& environment, const Handlers& handlers,
          const sigset_t& blocked) {
    std::vector<std::string> variables = with(environment);
    const std::vector<char*> words = pointers_to(command);
    const std::vector<char*> names = pointers_to(variables);
    volatile int reason = 0; // the child writes it
    made = ::vfork();
    if (made == 0) {
        reason = become(words.data(), names.data(), handlers, blocked);
        ::_exit(EXIT_FAILURE);
    }
    if (made < 0) {
        reason = errno;
    } else if (reason != 0) {
        ::waitpid(made, nullptr, 0);
    }
    return reason;
}

} // namespace

void ignore_signal(int signal) {
    if (std::signal(signal, SIG_IGN) != SIG_IGN) {
        sigaddset(&ignored_here, signal);
    }
}

Result<int> run_child(const std::vector<std::string>& command, const Environment& environment) {
    sigset_t all;
    sigset_t before_block;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before_block); // none gets lost before it can be passed on
    const Handlers before = catch_signals();
    pid_t made = 0;
    const int reason = spawn(made, command, environment, before, before_block);
    child.store(reason == 0 ? made : 0, std::memory_order_relaxed);
    ::sigprocmask(SIG_SETMASK, &before_block, nullptr);
    int status = 0;
    if (reason == 0) {
        while (::waitpid(made, &status, 0) < 0 && errno == EINTR) {
        }
    }
    child.store(0, std::memory_order_relaxed);
    restore_signals(before);
    if (reason != 0) {
        return Error{reason == ENOENT ? ErrorCode::not_found : ErrorCode::permission,
                     "cannot start " + command.front() + ": " + std::strerror(reason)};
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
