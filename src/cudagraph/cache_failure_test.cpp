// SPDX-License-Identifier: Apache-2.0
// A graph cache when the driver fails: at every call of a full life, for good, and with its context gone.
#include <algorithm>
#include <cstdio>

#include "cudagraph/cache_testing.hpp"

namespace plumb::cudagraph {
namespace {

class CacheFailure : public CacheTest {
  protected:
    void SetUp() override {
        CacheTest::SetUp();
        options.max_graphs = 2;
        options.profile_every = 2;
        options.state_slots = 2;
        options.profile_path = testing::TempDir() + "plumb_failures.jsonl";
    }
    ~CacheFailure() override { std::remove(options.profile_path.c_str()); }

    void note(const char* what, const Status& status) {
        if (status) {
            return;
        }
        ++failed;
        EXPECT_FALSE(status.error().message.empty()) << what;
        EXPECT_EQ(status.error().message.back(), last_sign(status.error().message)) << what;
        messages += std::string(what) + ": " + status.error().message + '\n';
    }
    static char last_sign(const std::string& message) { return message.back() == '\n' ? '?' : message.back(); }
    template <class T>
    void note(const char* what, const Result<T>& result) {
        note(what, result ? Status() : Status(result.error()));
    }

    /// Everything a cache does. Whatever fails, the engine goes on.
    void live() {
        const std::int32_t tokens[2] = {1, 2};
        for (const std::uint64_t key : {1u, 1u, 2u, 3u}) { // anew in place, and one too many
            note("capture", engine->capture(*cache, key, 2));
            if (vgpu::alive().captures != 0 && !cache->lost()) {
                ADD_FAILURE() << "the stream is still captured";
            }
            note("decode_state", cache->decode_state(engine->stream));
            note("set", cache->set_decode_state(7, 8, engine->stream));
            note("set batch", cache->set_decode_state(tokens, tokens, 2, engine->stream));
            note("replay", cache->replay(key, engine->stream));
            note("replay", cache->replay(key, engine->stream));
            vgpu::run_dry();
        }
        note("recapture", engine->capture(*cache, 3, 4)); // another topology
        note("begin", cache->begin_capture(engine->stream));
        (void)cache->abort_capture();
        note("verify", cache->verify_capture(4, engine->stream, [&](std::int32_t, std::int32_t) {
            engine->kernels("gemm", 2);
            return Status();
        }));
        (void)cache->invalidate(2);
        note("replay", cache->replay(3, engine->stream));
        note("replay", cache->replay(9, engine->stream));
        note("profile", cache->flush_profile());
    }

    /// Entry points of a life without failures, with how often each is called, the engine's own left out.
    std::map<std::string, std::uint64_t> calls_of_a_life() {
        cache = make_cache(options);
        std::map<std::string, std::uint64_t> before;
        for (const std::string& call : vgpu::called()) {
            before[call] = vgpu::calls(call);
        }
        live();
        cache.reset();
        EXPECT_EQ(failed, 0u) << messages;
        std::map<std::string, std::uint64_t> counts;
        for (const std::string& call : vgpu::called()) {
            if (call != "cuLaunchKernel" && call != "cuModuleGetFunction" && call != "cuGetProcAddress" &&
                vgpu::calls(call) > before[call]) {
                counts[call] = vgpu::calls(call) - before[call];
            }
        }
        return counts;
    }
    void fresh() {
        cache.reset();
        start(vgpu::Config{});
        failed = 0;
        messages.clear();
        cache = make_cache(options);
    }

    CudaGraphOptions options;
    std::size_t failed = 0;
    std::string messages;
};

TEST_F(CacheFailure, at_every_call_it_is_told_or_flagged_nothing_leaks_and_the_cache_works_on) {
    const std::map<std::string, std::uint64_t> counts = calls_of_a_life();
    ASSERT_GT(counts.size(), 20u);
    for (const auto& [call, count] : counts) {
        for (std::uint64_t nth = 1; nth <= count; ++nth) {
            fresh();
            SCOPED_TRACE(call + ", call " + std::to_string(nth) + " of " + std::to_string(count));
            vgpu::fail(call, cuda::CuResult::out_of_memory, nth);
            live();
            EXPECT_TRUE(vgpu::all_failures_struck() || call == "cuMemFree" || call == "cuMemFreeHost" ||
                        call == "cuEventDestroy" || call == "cuGraphExecDestroy" || call == "cuGraphDestroy" ||
                        call == "cuCtxGetCurrent" || call == "cuCtxGetId" ||
                        call == "cuThreadExchangeStreamCaptureMode" || call == "cuEventQuery" ||
                        call == "cuEventElapsedTime")
                << "planned calls that only the end makes";
            EXPECT_FALSE(cache->lost());
            EXPECT_EQ(message_of(engine->capture(*cache, 50)), "") << "it works afterwards";
            EXPECT_TRUE(replays(50));
            cache.reset();
            const vgpu::Alive left = vgpu::alive();
            EXPECT_EQ(left.graphs + left.execs + left.events + left.device_allocations + left.host_allocations +
                          left.captures,
                      0u)
                << vgpu::leaks() << '\n'
                << messages;
            EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(CacheFailure, a_failed_call_of_a_capture_or_replay_is_named) {
    for (const char* call : {"cuStreamIsCapturing", "cuStreamGetCtx", "cuStreamBeginCapture", "cuStreamEndCapture",
                             "cuGraphGetNodes", "cuGraphInstantiateWithFlags", "cuGraphUpload"}) {
        fresh();
        vgpu::fail(call, cuda::CuResult::out_of_memory);
        const std::string message = message_of(engine->capture(*cache, 1));
        EXPECT_NE(message.find(call), std::string::npos) << message;
        EXPECT_NE(message.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << message;
        EXPECT_EQ(message_of(engine->capture(*cache, 1)), "") << call;
    }
    vgpu::fail("cuGraphLaunch", cuda::CuResult::launch_out_of_resources);
    const std::string message = message_of(cache->replay(1, engine->stream));
    EXPECT_NE(message.find("cuGraphLaunch"), std::string::npos) << message;
    EXPECT_TRUE(replays(1));
    EXPECT_EQ(row(1).replays, 1u) << "the one that failed is none";
}

TEST_F(CacheFailure, a_failed_recapture_leaves_the_old_graph_in_place) {
    for (const char* call : {"cuStreamEndCapture", "cuGraphGetNodes", "cuGraphExecUpdate", "cuGraphUpload"}) {
        fresh();
        vgpu::kernel("old", {});
        ASSERT_TRUE(engine->capture(*cache, 1, 2, "old"));
        vgpu::fail(call, cuda::CuResult::out_of_memory);
        EXPECT_FALSE(engine->capture(*cache, 1, 2, "new")) << call;
        ASSERT_TRUE(replays(1)) << call;
        vgpu::run_dry();
        std::size_t old = 0;
        for (const vgpu::Operation& operation : vgpu::operations()) {
            EXPECT_STRNE(operation.name, "new") << call;
            old += std::string(operation.name) == "old" ? 1 : 0;
        }
        EXPECT_EQ(old, 2u) << call;
    }
}

TEST_F(CacheFailure, out_of_memory_at_instantiate_is_told_and_what_is_there_stays) {
    vgpu::Config config;
    config.exec_limit = 3;
    start(config);
    cache = make_cache();
    for (std::uint64_t key = 1; key <= 3; ++key) {
        ASSERT_TRUE(engine->capture(*cache, key));
    }
    const Status refused = engine->capture(*cache, 4);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
    EXPECT_NE(message_of(refused).find("max_graphs"), std::string::npos);
    EXPECT_EQ(cache->size(), 3u);
    for (std::uint64_t key = 1; key <= 3; ++key) {
        EXPECT_TRUE(replays(key));
    }
}

TEST_F(CacheFailure, an_invalidated_capture_is_told_and_the_stream_is_as_before) {
    cache = make_cache();
    ASSERT_TRUE(cache->begin_capture(engine->stream));
    engine->kernels("gemm", 1);
    EXPECT_NE(engine->calls.stream_synchronize(engine->stream), cuda::CuResult::success);
    const std::string message = message_of(cache->end_capture(1));
    EXPECT_NE(message.find("cuStreamEndCapture"), std::string::npos) << message;
    EXPECT_EQ(message_of(engine->capture(*cache, 1)), "");
    EXPECT_TRUE(replays(1));
    cache.reset();
    engine.reset();
    EXPECT_EQ(vgpu::leaks(), "");
    vgpu::reset(); // the capture was invalidated by the test itself
    engine = std::make_unique<Engine>();
}

TEST_F(CacheFailure, after_a_sticky_error_the_cache_is_lost_makes_no_call_and_says_what_it_left) {
    expect_lost = true;
    cache = make_cache(options);
    ASSERT_TRUE(engine->capture(*cache, 1));
    ASSERT_TRUE(engine->capture(*cache, 2));
    ASSERT_TRUE(cache->set_decode_state(1, 1, engine->stream));
    ASSERT_TRUE(cache->status());
    vgpu::lose_device(cuda::CuResult::illegal_address);
    const std::string message = message_of(cache->replay(1, engine->stream));
    EXPECT_NE(message.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << message;
    EXPECT_TRUE(cache->lost());
    const std::uint64_t calls = vgpu::calls("*");
    const Result<bool> replayed = cache->replay(1, engine->stream);
    ASSERT_TRUE(replayed);
    EXPECT_FALSE(*replayed);
    EXPECT_FALSE(cache->begin_capture(engine->stream));
    EXPECT_FALSE(cache->end_capture(1));
    EXPECT_FALSE(cache->abort_capture());
    EXPECT_FALSE(cache->set_decode_state(1, 1, engine->stream));
    EXPECT_FALSE(cache->decode_state(engine->stream));
    EXPECT_FALSE(cache->invalidate(1));
    cache->invalidate_all();
    EXPECT_EQ(cache->size(), 0u);
    EXPECT_EQ(row(1).eager_steps, (std::vector<CudaGraphRow::Count>{{"the CUDA context was lost", 1}}));
    const std::string status = message_of(cache->status());
    EXPECT_NE(status.find("2 graphs, 2 executables, 2 events, 1 device buffer, 1 pinned buffer"), std::string::npos)
        << status;
    cache.reset();
    EXPECT_EQ(vgpu::calls("*"), calls);
}

TEST_F(CacheFailure, a_device_lost_at_any_call_makes_the_cache_lost_and_never_worse) {
    expect_lost = true;
    const std::map<std::string, std::uint64_t> counts = calls_of_a_life();
    for (const auto& [call, count] : counts) {
        if (call == "cuGetErrorName") {
            continue;
        }
        for (const std::uint64_t nth : {std::uint64_t{1}, (count + 1) / 2}) {
            fresh();
            SCOPED_TRACE(call + ", call " + std::to_string(nth) + " of " + std::to_string(count));
            vgpu::lose_device_at(call, cuda::CuResult::launch_failed, nth);
            live();
            if (!vgpu::all_failures_struck()) {
                continue; // a call that only the end makes
            }
            (void)engine->capture(*cache, 60);
            EXPECT_TRUE(cache->lost());
            const std::uint64_t calls = vgpu::calls("*");
            const Result<bool> replayed = cache->replay(3, engine->stream);
            EXPECT_TRUE(replayed.ok() && !*replayed);
            EXPECT_NE(message_of(cache->status()).find("left behind"), std::string::npos);
            cache.reset();
            EXPECT_EQ(vgpu::calls("*"), calls);
            EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
            if (HasFailure()) {
                return;
            }
        }
    }
}

TEST_F(CacheFailure, a_context_that_goes_before_the_cache_takes_its_graphs_along) {
    cache = make_cache(options);
    ASSERT_TRUE(engine->capture(*cache, 1));
    ASSERT_TRUE(replays(1));
    ASSERT_TRUE(cache->set_decode_state(1, 1, engine->stream));
    const cuda::Stream stream = engine->stream;
    engine.reset();
    EXPECT_FALSE(cache->replay(1, stream));
    const Result<bool> again = cache->replay(1, stream);
    ASSERT_TRUE(again.ok()) << message_of(again);
    EXPECT_FALSE(*again);
    EXPECT_EQ(row(1).eager_steps, (std::vector<CudaGraphRow::Count>{{"its CUDA context was destroyed", 1}}));
    cache.reset();
    engine = std::make_unique<Engine>();
}

TEST_F(CacheFailure, a_stream_that_goes_before_the_cache_is_an_error_and_other_streams_work_on) {
    cache = make_cache(options);
    cuda::Stream other = nullptr;
    Engine::check(engine->calls.stream_create(&other, cuda::stream_non_blocking));
    ASSERT_TRUE(cache->begin_capture(other));
    engine->kernel(other, "gemm");
    ASSERT_TRUE(cache->end_capture(1));
    ASSERT_TRUE(cache->set_decode_state(1, 1, other));
    Engine::check(engine->calls.stream_destroy(other));
    EXPECT_TRUE(replays(1)) << "graphs outlive the stream they were captured on";
    EXPECT_FALSE(cache->lost());
}

} // namespace
} // namespace plumb::cudagraph
