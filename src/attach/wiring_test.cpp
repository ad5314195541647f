// SPDX-License-Identifier: Apache-2.0
#include "attach/wiring.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

namespace plumb::attach {
namespace {

/// Whether a forked child could look. It dies where it waits for ever.
bool child_could_look(LookLock& looks) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(looks.take().owns_lock() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    return WEXITSTATUS(status) == 1;
}

TEST(LookLock, a_forked_child_does_not_wait_for_a_thread_that_it_does_not_have) {
    static auto* const looks = new LookLock;
    EXPECT_TRUE(child_could_look(*looks));
    std::promise<void> looking;
    std::promise<void> forked;
    std::thread other([&] {
        const std::unique_lock lock = looks->take();
        looking.set_value();
        forked.get_future().wait();
    });
    looking.get_future().wait();
    EXPECT_FALSE(child_could_look(*looks));
    forked.set_value();
    other.join();
    EXPECT_TRUE(looks->take().owns_lock());
}

} // namespace
} // namespace plumb::attach
