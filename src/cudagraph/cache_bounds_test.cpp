// SPDX-License-Identifier: Apache-2.0
// The bounds of a graph cache, and many threads in it.
#include <atomic>
#include <thread>

#include "cudagraph/cache_testing.hpp"

namespace plumb::cudagraph {
namespace {

class CacheBounds : public CacheTest {};

CudaGraphOptions at_most(std::size_t graphs) {
    CudaGraphOptions options;
    options.max_graphs = graphs;
    return options;
}

TEST_F(CacheBounds, F12_the_least_recently_replayed_graph_goes_first) {
    cache = make_cache(at_most(3));
    for (std::uint64_t key = 1; key <= 3; ++key) {
        ASSERT_TRUE(engine->capture(*cache, key));
    }
    EXPECT_TRUE(replays(1));
    ASSERT_TRUE(engine->capture(*cache, 4));
    EXPECT_EQ(cache->size(), 3u);
    EXPECT_FALSE(replays(2));
    EXPECT_TRUE(replays(1));
    EXPECT_TRUE(replays(3));
    EXPECT_TRUE(replays(4));
    EXPECT_EQ(row(2).evictions, 1u);
    EXPECT_EQ(row(2).eager_steps, (std::vector<CudaGraphRow::Count>{{"evicted", 1}}));
}

TEST_F(CacheBounds, F12_captures_without_end_never_run_out_of_memory) {
    vgpu::Config config;
    config.exec_limit = 171; // as many as a device once took
    start(config);
    cache = make_cache();
    for (std::uint64_t key = 0; key < 1000; ++key) {
        ASSERT_EQ(message_of(engine->capture(*cache, key)), "");
        ASSERT_TRUE(replays(key));
    }
    EXPECT_EQ(cache->size(), CudaGraphOptions{}.max_graphs);
    vgpu::run_dry();
    EXPECT_EQ(vgpu::alive().execs, CudaGraphOptions{}.max_graphs);
    EXPECT_EQ(vgpu::alive().graphs, CudaGraphOptions{}.max_graphs);
}

TEST_F(CacheBounds, F12_an_eviction_waits_for_nothing_and_what_is_in_flight_finishes) {
    vgpu::kernel("gemm", {{}, 1'000'000, 1'000'000, {}});
    cache = make_cache(at_most(1));
    ASSERT_TRUE(engine->capture(*cache, 1));
    ASSERT_TRUE(replays(1));
    const std::size_t waits = vgpu::synchronisations().size();
    const std::int64_t before = vgpu::now_ns();
    ASSERT_TRUE(engine->capture(*cache, 2));
    EXPECT_LT(vgpu::now_ns() - before, 1'000'000) << "the replay in flight takes three milliseconds";
    EXPECT_EQ(vgpu::synchronisations().size(), waits);
    EXPECT_EQ(vgpu::destroyed_in_flight(), 1u);
    vgpu::run_dry();
    std::size_t kernels = 0;
    for (const vgpu::Operation& operation : vgpu::operations()) {
        kernels += operation.kind == vgpu::OpKind::kernel ? 1 : 0;
    }
    EXPECT_EQ(kernels, 3u);
}

TEST_F(CacheBounds, graphs_go_by_estimated_bytes_too) {
    cache = make_cache(at_most(0));
    ASSERT_TRUE(engine->capture(*cache, 1, 100));
    const std::uint64_t one = cache->bytes();
    CudaGraphOptions options;
    options.max_bytes = one * 5 / 2;
    cache = make_cache(options);
    for (std::uint64_t key = 1; key <= 5; ++key) {
        ASSERT_TRUE(engine->capture(*cache, key, 100));
        EXPECT_LE(cache->bytes(), options.max_bytes);
    }
    EXPECT_EQ(cache->size(), 2u);
}

TEST_F(CacheBounds, twins_count_too) {
    cache = make_cache(at_most(0), &host);
    ASSERT_TRUE(engine->capture(*cache, 1, 100));
    const std::uint64_t one = cache->bytes();
    host.ledger.account(1)->measure([](recording::GraphInfo& row) { row.twin_bytes = 1000; });
    EXPECT_EQ(cache->bytes(), one + 1000);
    CudaGraphOptions options;
    options.max_bytes = one * 5 / 2;
    cache = make_cache(options, &host);
    ASSERT_TRUE(engine->capture(*cache, 1, 100));
    host.ledger.account(1)->measure([&](recording::GraphInfo& row) { row.twin_bytes = static_cast<double>(one); });
    ASSERT_TRUE(engine->capture(*cache, 2, 100));
    EXPECT_EQ(cache->size(), 1u);
    EXPECT_FALSE(replays(1));
}

TEST_F(CacheBounds, a_graph_that_alone_is_too_large_is_refused_and_the_others_stay) {
    cache = make_cache(at_most(0));
    ASSERT_TRUE(engine->capture(*cache, 1, 1));
    CudaGraphOptions options;
    options.max_bytes = cache->bytes() * 2;
    cache = make_cache(options);
    ASSERT_TRUE(engine->capture(*cache, 1, 1));
    const Status refused = engine->capture(*cache, 2, 1000);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
    EXPECT_NE(message_of(refused).find("max_bytes"), std::string::npos);
    EXPECT_TRUE(replays(1));
}

TEST_F(CacheBounds, a_launch_waits_for_no_instantiation_of_another_key) {
    cache = make_cache();
    ASSERT_TRUE(engine->capture(*cache, 1));
    vgpu::Hold hold("cuGraphInstantiateWithFlags");
    Status captured;
    std::thread other([&] {
        const cuda::CurrentContext current(engine->calls, engine->context);
        cuda::Stream stream = nullptr;
        (void)engine->calls.stream_create(&stream, cuda::stream_non_blocking);
        captured = cache->begin_capture(stream);
        engine->kernel(stream, "gemm");
        captured = cache->end_capture(2);
        (void)engine->calls.stream_destroy(stream);
    });
    hold.wait_until_inside();
    for (int i = 0; i < 100; ++i) {
        EXPECT_TRUE(replays(1));
    }
    EXPECT_FALSE(replays(3));
    EXPECT_TRUE(cache->invalidate(1));
    EXPECT_EQ(cache->size(), 0u);
    hold.release();
    other.join();
    EXPECT_EQ(message_of(captured), "");
    EXPECT_TRUE(replays(2));
}

TEST_F(CacheBounds, a_launch_of_one_key_waits_for_no_launch_of_another) {
    cache = make_cache();
    ASSERT_TRUE(engine->capture(*cache, 1));
    ASSERT_TRUE(engine->capture(*cache, 2));
    vgpu::Hold hold("cuGraphLaunch");
    std::thread other([&] {
        const cuda::CurrentContext current(engine->calls, engine->context);
        EXPECT_TRUE(replays(1));
    });
    hold.wait_until_inside();
    EXPECT_TRUE(replays(2));
    EXPECT_TRUE(cache->invalidate(1)) << "and neither does an eviction";
    EXPECT_FALSE(replays(1));
    EXPECT_EQ(vgpu::alive().execs, 2u) << "the one inside its launch still has its executable";
    hold.release();
    other.join();
    EXPECT_EQ(vgpu::alive().execs, 1u);
}

/// Captures, replays and invalidates on a stream of its own until `captures` are done by all.
class Worker {
  public:
    Worker(Engine& engine, CudaGraphCache& cache, std::atomic<int>& left, unsigned seed)
        : engine_(engine), cache_(cache), left_(left), random_(seed) {}

    void operator()() {
        const cuda::CurrentContext current(engine_.calls, engine_.context);
        cuda::Stream stream = nullptr;
        ASSERT_EQ(engine_.calls.stream_create(&stream, cuda::stream_non_blocking), cuda::CuResult::success);
        while (left_.fetch_sub(1) > 0) {
            turn(stream);
        }
        (void)engine_.calls.stream_destroy(stream);
    }

  private:
    void turn(cuda::Stream stream) {
        const std::uint64_t key = next() % 500;
        Status status = cache_.begin_capture(stream);
        ASSERT_TRUE(status) << message_of(status);
        const unsigned kernels = 1 + static_cast<unsigned>(key % 3) + next() % 2;
        for (unsigned i = 0; i < kernels; ++i) {
            engine_.kernel(stream, "gemm");
        }
        status = cache_.end_capture(key);
        ASSERT_TRUE(status) << message_of(status);
        EXPECT_LE(cache_.size(), 64u);
        EXPECT_LE(vgpu::alive().execs, 64u + 2 * 8) << "those that eight threads make and free at this moment";
        for (int i = 0; i < 3; ++i) {
            const Result<bool> replayed = cache_.replay(i == 0 ? key : next() % 500, stream);
            ASSERT_TRUE(replayed) << message_of(replayed);
        }
        if (next() % 50 == 0) {
            (void)cache_.invalidate(next() % 500);
        }
    }
    unsigned next() {
        random_ = random_ * 1664525u + 1013904223u;
        return random_ >> 8;
    }

    Engine& engine_;
    CudaGraphCache& cache_;
    std::atomic<int>& left_;
    unsigned random_;
};

TEST_F(CacheBounds, F12_ten_thousand_captures_by_eight_threads_hold_the_limit_and_use_nothing_evicted) {
    vgpu::Config config;
    config.keep_operations = 10'000;
    start(config);
    (void)engine->function("gemm");
    cache = make_cache(at_most(64), &host);
    std::atomic<int> left{10'000};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 8; ++i) {
        threads.emplace_back(Worker(*engine, *cache, left, i + 1));
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    const std::size_t size = cache->size();
    EXPECT_LE(size, 64u);
    EXPECT_GE(size, 64u - 8) << "each thread may have given one up last";
    EXPECT_EQ(vgpu::alive().execs, size);
    EXPECT_EQ(vgpu::alive().graphs, size);
    std::uint64_t captures = 0;
    std::size_t live = 0;
    for (const CudaGraphRow& life : cache->rows()) {
        captures += life.captures;
        live += life.live ? 1 : 0;
        EXPECT_EQ(life.captures, life.instantiations + life.updates) << life.key;
        EXPECT_EQ(host.live[life.key] != 0, life.live)
            << "the profiler knows just the keys that are live: " << life.key;
    }
    EXPECT_EQ(captures, 10'000u);
    EXPECT_EQ(live, size);
}

} // namespace
} // namespace plumb::cudagraph
