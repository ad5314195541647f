// SPDX-License-Identifier: Apache-2.0
#include "cli/launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <spawn.h>
#include <string_view>
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

/// What was ignored stays so, here and in the child (nohup); what was not, the child gets back by its exec.
Handlers catch_signals() {
    Handlers before;
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
        ::sigaction(passed_on[i], nullptr, &before[i]);
        if (before[i].sa_handler != SIG_IGN) {
            ::sigaction(passed_on[i], &action, nullptr);
        }
    }
    return before;
}

void restore_signals(const Handlers& before) {
    for (std::size_t i = 0; i < passed_on.size(); ++i) {
        ::sigaction(passed_on[i], &before[i], nullptr);
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

/// 0, or why not. The child begins with these signals blocked, and with SIGPIPE and SIGXFSZ as other programs have it.
int spawn(pid_t& made, std::vector<std::string> command, const Environment& environment, const sigset_t& blocked) {
    std::vector<std::string> variables = with(environment);
    sigset_t as_usual;
    sigemptyset(&as_usual);
    sigaddset(&as_usual, SIGPIPE);
    sigaddset(&as_usual, SIGXFSZ);
    posix_spawnattr_t attributes;
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setsigmask(&attributes, &blocked);
    ::posix_spawnattr_setsigdefault(&attributes, &as_usual);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    const std::string program = command.front();
    const int error = ::posix_spawnp(&made, program.c_str(), nullptr, &attributes, pointers_to(command).data(),
                                     pointers_to(variables).data());
    ::posix_spawnattr_destroy(&attributes);
    return error;
}

} // namespace

Result<int> run_child(const std::vector<std::string>& command, const Environment& environment) {
    sigset_t all;
    sigset_t before_block;
    sigfillset(&all);
    ::sigprocmask(SIG_BLOCK, &all, &before_block); // none gets lost before it can be passed on
    const Handlers before = catch_signals();
    pid_t made = 0;
    int reason = spawn(made, command, environment, before_block);
    if (reason == ENOEXEC) { // a script that names no interpreter, which a shell runs itself
        std::vector<std::string> script = command;
        script.insert(script.begin(), "/bin/sh");
        reason = spawn(made, script, environment, before_block);
    }
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
