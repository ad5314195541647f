// SPDX-License-Identifier: Apache-2.0
// A process that forks while graphs are probed: the child ends, and leaves the driver alone.
#include <sys/wait.h>
#include <unistd.h>

#include "engine.hpp"

namespace plumb::cuda_test {
namespace {

/// Exit status of a child that ends its profiler; a child that hangs is killed by its alarm.
int child_that_ends(Engine& engine) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        engine.end_profiler();
        _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return status;
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
    EXPECT_EQ(child_that_ends(engine), 0);
}

TEST(Fork, a_child_forked_after_the_recording_was_closed_ends) {
    Engine engine({}, "graph.every=4");
    CudaGraphCache cache(&engine.profiler());
    capture_and_replay(engine, cache);
    ASSERT_TRUE(engine.profiler().close().ok());
    EXPECT_EQ(child_that_ends(engine), 0);
}

} // namespace
} // namespace plumb::cuda_test
