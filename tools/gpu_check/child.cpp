// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace gpu_check {
namespace {

double now_s() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// REQUIRES: no thread but this one, so that the child may run before its exec. -1: no child.
pid_t start(const std::vector<std::string>& words, int progress) {
    std::vector<char*> arguments;
    static char self[] = "gpu_check";
    arguments.push_back(self);
    for (const std::string& word : words) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    const pid_t parent = getpid();
    const pid_t child = fork();
    if (child != 0) {
        return child;
    }
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); // a killed run leaves nothing on the device
    if (getppid() != parent) {
        _exit(127);
    }
    if (progress >= 0) {
        dup2(progress, progress_fd); // without close-on-exec
    }
    execv("/proc/self/exe", arguments.data());
    _exit(127);
}

bool reap(pid_t child, int options, Ended& ended) {
    int status = 0;
    if (waitpid(child, &status, options) != child) {
        return false;
    }
    ended.how = WIFEXITED(status) ? Ended::How::exited : Ended::How::crashed;
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
    return true;
}

void kill_and_reap(pid_t child, Ended& ended) {
    kill(-child, SIGKILL);
    kill(child, SIGKILL);
    reap(child, 0, ended);
    ended.how = Ended::How::timed_out;
}

bool move_all(auto call, int descriptor, auto* bytes, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
        const ssize_t moved = call(descriptor, bytes + done, size - done);
        if (moved <= 0 && !(moved < 0 && errno == EINTR)) {
            return false;
        }
        done += moved > 0 ? static_cast<std::size_t>(moved) : 0;
    }
    return true;
}

bool send_all(int descriptor, const void* from, std::size_t size) {
    const auto call = [](int to, const char* bytes, std::size_t left) {
        return send(to, bytes, left, MSG_NOSIGNAL);
    };
    return move_all(call, descriptor, static_cast<const char*>(from), size);
}

bool receive_all(int descriptor, void* to, std::size_t size) {
    return move_all([](int from, char* bytes, std::size_t left) { return read(from, bytes, left); }, descriptor,
                    static_cast<char*>(to), size);
}

} // namespace

Partner::Partner(const std::vector<std::string>& words) {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) {
        child_ = start(words, ends[1]);
        socket_ = ends[0];
        close(ends[1]);
    }
}

Partner::~Partner() {
    Ended ignored;
    if (child_ > 0) {
        kill_and_reap(child_, ignored);
    }
    close(socket_);
}

std::vector<double> Partner::ask(char what, std::size_t numbers) {
    if (child_ <= 0) {
        return {};
    }
    std::vector<double> got(numbers);
    kill(child_, SIGCONT);
    const bool answered = send_all(socket_, &what, 1) && receive_all(socket_, got.data(), numbers * sizeof(double));
    kill(child_, SIGSTOP);
    return answered ? got : std::vector<double>();
}

bool next_question(char& what) { return receive_all(progress_fd, &what, 1); }

void answer(const std::vector<double>& numbers) {
    static_cast<void>(send_all(progress_fd, numbers.data(), numbers.size() * sizeof(double)));
}

Ended run_child(const std::vector<std::string>& words, double limit_seconds) {
    Ended ended;
    const double began = now_s();
    const pid_t child = start(words, -1);
    if (child < 0) {
        ended.how = Ended::How::not_started;
        return ended;
    }
    while (!reap(child, WNOHANG, ended)) {
        if (now_s() - began >= limit_seconds) {
            kill_and_reap(child, ended);
            break;
        }
        usleep(2000);
    }
    ended.seconds = now_s() - began;
    return ended;
}

Ended run_child_with_progress(const std::vector<std::string>& words, double limit_per_byte, unsigned& bytes) {
    Ended ended;
    bytes = 0;
    int ends[2] = {-1, -1};
    const double began = now_s();
    const pid_t child = pipe2(ends, O_CLOEXEC) == 0 ? start(words, ends[1]) : -1;
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        ended.how = Ended::How::not_started;
        return ended;
    }
    for (;;) {
        pollfd wait{ends[0], POLLIN, 0};
        const int ready = poll(&wait, 1, static_cast<int>(limit_per_byte * 1000));
        char buffer[64];
        const ssize_t got = ready > 0 ? read(ends[0], buffer, sizeof buffer) : 0;
        if (ready <= 0) {
            kill_and_reap(child, ended);
            break;
        }
        if (got <= 0) { // closed: it has ended, or is about to
            reap(child, 0, ended);
            break;
        }
        bytes += static_cast<unsigned>(got);
    }
    close(ends[0]);
    ended.seconds = now_s() - began;
    return ended;
}

} // namespace gpu_check
