// SPDX-License-Identifier: Apache-2.0
// A process that forks while graphs are probed: the child ends, and leaves the driver alone.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine.hpp"
#include "support/allocation_count.hpp"
#include "support/sanitizers.hpp"

namespace plumb::cuda_test {
namespace {

/// Of a child that has just begun. Handlers of fork() run there in the order in which they were given: this one before
/// those of the library, which gives its own with the first profiler.
std::size_t calls_at_start = 0;
const int handler_given = pthread_atfork(nullptr, nullptr, [] { calls_at_start = allocator_calls(); });

constexpr int left_the_allocator_alone = 0;
constexpr int called_the_allocator = 3;

/// Exit status of a child that ends its profiler; a child that hangs is killed by its alarm. Other threads may have been
/// inside the allocator at the fork, and not every allocator survives that, so that fork() itself must not call it there.
/// A sanitizer's does not: its child ends nothing.
int child_that_ends(Engine& engine) {
    EXPECT_EQ(handler_given, 0);
    const pid_t child = fork();
    if (child == 0) {
        const int end = allocator_calls() == calls_at_start ? left_the_allocator_alone : called_the_allocator;
        alarm(20);
        if (!sanitized) {
            engine.end_profiler();
        }
        _exit(end);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    return WEXITSTATUS(status);
}

void capture_and_replay(Engine& engine, CudaGraphCache& cache) {
    ASSERT_TRUE(cache.begin_capture(engine.stream()).ok());
    engine.forward(2, {{Brick::attention, 50'000}});
    ASSERT_TRUE(cache.end_capture(1).ok());
    for (int i = 0; i < 50; ++i) {
        PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1));
        ASSERT_TRUE(cache.replay(1, engine.stream()).ok());
        engine.wait();
    }
}

TEST(Fork, a_child_of_a_recording_engine_with_probes_ends) {
    Engine engine({}, "graph.every=4");
    CudaGraphCache cache(&engine.profiler());
    capture_and_replay(engine, cache);
    engine.profiler().reset(); // what counts from here on belongs to the parent as well
    EXPECT_EQ(child_that_ends(engine), left_the_allocator_alone);
}

TEST(Fork, a_child_forked_after_the_recording_was_closed_ends) {
    Engine engine({}, "graph.every=4");
    CudaGraphCache cache(&engine.profiler());
    capture_and_replay(engine, cache);
    ASSERT_TRUE(engine.profiler().close().ok());
    EXPECT_EQ(child_that_ends(engine), left_the_allocator_alone);
}

} // namespace
} // namespace plumb::cuda_test
