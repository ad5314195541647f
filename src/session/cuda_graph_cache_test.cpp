// SPDX-License-Identifier: Apache-2.0
// The graph cache with a real profiler, on the virtual GPU: from capture to the recording.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "answers/replays/replays.hpp"
#include "cudagraph/guarded_driver.hpp"
#include "metrics/scrape_testing.hpp"
#include "plumb/cuda.hpp"
#include "plumb/plumb.hpp"
#include "plumb/results.hpp"
#include "support/json_schema.hpp"
#include "support/text_of_file.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb {
namespace {

namespace cuda_driver = backends::cuda;

std::vector<std::int32_t> seen; // positions, by the kernel when it ran

vgpu::Function& step_kernel() {
    static vgpu::Function function = nullptr;
    return function;
}

void enqueue_step(CUstream_st* stream, const plumb::CudaDecodeState& state) {
    std::uint64_t positions = state.positions;
    void* params[] = {&positions};
    (void)cuda_driver::driver()->launch_kernel(step_kernel(), 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr);
}

// clang-format off
// [graph_cache]
plumb::Status decode_step(plumb::CudaGraphCache& cache, CUstream_st* stream, std::uint64_t batch, int token, int at) {
    if (plumb::Status set = cache.set_decode_state(token, at, stream); !set.ok())
        return set;
    plumb::Result<bool> replayed = cache.replay(batch, stream);
    if (!replayed.ok() || *replayed)
        return replayed.ok() ? plumb::Status() : plumb::Status(replayed.error());
    plumb::Result<plumb::CudaDecodeState> state = cache.decode_state(stream);
    if (!state.ok())
        return state.error();
    if (plumb::Status begun = cache.begin_capture(stream); !begun.ok())
        return begun;
    enqueue_step(stream, *state); // kernels read token, position and kv length from device memory
    if (plumb::Status ended = cache.end_capture(batch); !ended.ok())
        return ended;
    replayed = cache.replay(batch, stream); // a capture runs nothing
    return replayed.ok() ? plumb::Status() : plumb::Status(replayed.error());
}
// [/graph_cache]
// clang-format on

class CudaGraphs : public testing::Test {
  protected:
    [[nodiscard]] virtual vgpu::Config world() const { return {}; }
    void SetUp() override {
        vgpu::reset(world());
        const cuda_driver::Driver& calls = *cuda_driver::driver();
        ASSERT_EQ(calls.init(0), vgpu::CuResult::success);
        ASSERT_EQ(calls.primary_ctx_retain(&context, 0), vgpu::CuResult::success);
        ASSERT_EQ(calls.ctx_push_current(context), vgpu::CuResult::success);
        ASSERT_EQ(calls.stream_create(&stream, cuda_driver::stream_non_blocking), vgpu::CuResult::success);
        ASSERT_EQ(calls.module_load_data(&module, "any image"), vgpu::CuResult::success);
        ASSERT_EQ(calls.module_get_function(&gemm, module, "gemm"), vgpu::CuResult::success);
        path = testing::TempDir() + "plumb_graphs_" + std::to_string(::getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name() + ".plumb";
    }
    void TearDown() override {
        cache.reset();
        profiler.reset();
        const cuda_driver::Driver& calls = *cuda_driver::driver();
        (void)calls.stream_destroy(stream);
        vgpu::Context popped = nullptr;
        (void)calls.ctx_pop_current(&popped);
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        EXPECT_TRUE(vgpu::invalidations().empty());
        std::remove(path.c_str());
    }
    void start(const std::string& settings = "") {
        Result<Config> config = Config::parse("on,out=" + path + settings);
        ASSERT_TRUE(config.ok()) << config.error().message;
        config->clock = &vgpu::host_clock();
        profiler = std::make_unique<Profiler>(*config);
        cache = std::make_unique<CudaGraphCache>(profiler.get());
    }
    void kernels(vgpu::Stream on, int count) {
        for (int i = 0; i < count; ++i) {
            (void)cuda_driver::driver()->launch_kernel(gemm, 1, 1, 1, 32, 1, 1, 0, on, nullptr, nullptr);
        }
    }
    void capture(std::uint64_t key, int count) {
        const Status begun = cache->begin_capture(stream);
        ASSERT_TRUE(begun.ok()) << begun.error().message;
        const Queue queue = cuda(stream);
        {
            const auto scope = profiler->scope(queue, Brick::attention);
            kernels(stream, count);
        }
        const Status ended = cache->end_capture(key);
        ASSERT_TRUE(ended.ok()) << ended.error().message;
    }
    void replay(std::uint64_t key, int times) {
        for (int i = 0; i < times; ++i) {
            const Result<bool> replayed = cache->replay(key, stream);
            ASSERT_TRUE(replayed.ok()) << replayed.error().message;
            vgpu::run_dry();
        }
    }
    [[nodiscard]] ReplayReport report() {
        const Status flushed = profiler->flush();
        EXPECT_TRUE(flushed.ok()) << flushed.error().message;
        const Result<ReplayReport> read = read_replays({path});
        EXPECT_TRUE(read.ok()) << read.error().message;
        return read.ok() ? *read : ReplayReport{};
    }

    vgpu::Context context = nullptr;
    vgpu::Stream stream = nullptr;
    vgpu::Module module = nullptr;
    vgpu::Function gemm = nullptr;
    std::string path;
    std::unique_ptr<Profiler> profiler;
    std::unique_ptr<CudaGraphCache> cache;
};

TEST_F(CudaGraphs, F11_the_life_of_a_key_is_in_the_recording_as_the_cache_knows_it) {
    start();
    capture(8, 4);
    replay(8, 20);
    capture(8, 4);
    replay(8, 5);
    replay(9, 3);
    cache->note_padding(8, 3, 8);
    cache->note_padding(8, 5, 8);
    const ReplayReport found = report();
    ASSERT_EQ(found.graphs.size(), 2u);
    const ReplayRow& row = found.graphs[0];
    EXPECT_EQ(row.key, 8u);
    EXPECT_EQ(row.captures, 2u);
    EXPECT_EQ(row.instantiations, 1u);
    EXPECT_EQ(row.updates, 1u);
    EXPECT_EQ(row.uploads, 2u);
    EXPECT_EQ(row.replays, 25u);
    EXPECT_EQ(row.evictions, 0u);
    EXPECT_EQ(row.rows_used, 8u);
    EXPECT_EQ(row.rows_padded, 16u);
    EXPECT_EQ(row.nodes, (ReplayRow::Counts{{"kernel", 4}}));
    EXPECT_TRUE(row.capture_ns.value && row.instantiate_ns.value && row.launch_ns.value && row.bytes.value);
    EXPECT_EQ(found.graphs[1].eager_steps, (ReplayRow::Counts{{"never captured", 3}}));
    for (const CudaGraphRow& own : cache->rows()) {
        if (own.key == 8) {
            EXPECT_EQ(own.captures, row.captures);
            EXPECT_EQ(own.replays, row.replays);
            EXPECT_EQ(own.not_probed, "");
        }
    }
}

TEST_F(CudaGraphs, what_was_invalidated_is_no_eviction_in_the_recording) {
    start();
    capture(8, 2);
    EXPECT_TRUE(cache->invalidate(8));
    replay(8, 1);
    const ReplayReport found = report();
    ASSERT_EQ(found.graphs.size(), 1u);
    EXPECT_EQ(found.graphs[0].evictions, 0u);
    EXPECT_EQ(found.graphs[0].eager_steps, (ReplayRow::Counts{{"invalidated", 1}}));
}

TEST_F(CudaGraphs, F11_the_settings_of_the_spec_string_act_and_records_lie_beside_the_recording) {
    start(",graph.profile=2,graph.sync=on,graph.upload=each");
    capture(8, 2);
    const std::uint64_t waits = vgpu::synchronising_calls(std::this_thread::get_id());
    replay(8, 4);
    EXPECT_EQ(vgpu::synchronising_calls(std::this_thread::get_id()), waits + 4);
    EXPECT_TRUE(cache->flush_profile().ok());
    std::ifstream file(path + ".replays.jsonl");
    std::vector<support::json> records;
    for (std::string line; std::getline(file, line);) {
        records.push_back(support::parsed(line));
    }
    ASSERT_EQ(records.size(), 2u);
    EXPECT_EQ(records[1]["call"], 4);
    EXPECT_GT(records[1]["upload_ns"], 0);
    EXPECT_GT(records[1]["sync_ns"], 0);
    EXPECT_GT(records[1]["device_ns"], 0);
    std::remove((path + ".replays.jsonl").c_str());
}

TEST_F(CudaGraphs, a_value_baked_in_is_in_the_recording) {
    vgpu::KernelModel model;
    model.param_bytes = {4};
    vgpu::kernel("rope", model);
    start();
    vgpu::Function rope = nullptr;
    ASSERT_EQ(cuda_driver::driver()->module_get_function(&rope, module, "rope"), vgpu::CuResult::success);
    const auto found = cache->verify_capture(8, stream, [&](std::int32_t, std::int32_t position) {
        void* params[] = {&position};
        (void)cuda_driver::driver()->launch_kernel(rope, 1, 1, 1, 32, 1, 1, 0, stream, params, nullptr);
        return Status();
    });
    ASSERT_TRUE(found.ok()) << found.error().message;
    ASSERT_EQ(found->size(), 1u);
    const ReplayReport read = report();
    ASSERT_EQ(read.graphs.size(), 1u);
    EXPECT_EQ(read.graphs[0].baked_in, std::vector<std::string>{"kernel rope #0, parameter 0, bytes 0..1"});
    EXPECT_TRUE(read.baked_in);
}

TEST_F(CudaGraphs, the_sample_of_the_docs_decodes) {
    vgpu::KernelModel model;
    model.param_bytes = {8};
    model.function = [](const vgpu::KernelRun& run) {
        seen.push_back(*vgpu::at<std::int32_t>(run.param<std::uint64_t>(0)));
    };
    vgpu::kernel("step", model);
    ASSERT_EQ(cuda_driver::driver()->module_get_function(&step_kernel(), module, "step"), vgpu::CuResult::success);
    start();
    seen.clear();
    for (int at = 0; at < 10; ++at) {
        const Status done = decode_step(*cache, stream, 1, 100 + at, at);
        ASSERT_TRUE(done.ok()) << done.error().message;
    }
    vgpu::run_dry();
    EXPECT_EQ(seen, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST_F(CudaGraphs, many_threads_capture_replay_and_evict_under_the_probes) {
    start(",graph.every=4");
    CudaGraphOptions options;
    options.max_graphs = 16;
    cache = std::make_unique<CudaGraphCache>(profiler.get(), options);
    std::atomic<int> left{1'000};
    const auto work = [&](unsigned seed) {
        const cuda_driver::CurrentContext current(*cuda_driver::driver(), context);
        vgpu::Stream own = nullptr;
        (void)cuda_driver::driver()->stream_create(&own, cuda_driver::stream_non_blocking);
        while (left.fetch_sub(1) > 0) {
            seed = seed * 1664525u + 1013904223u;
            const std::uint64_t key = (seed >> 8) % 50;
            ASSERT_TRUE(cache->begin_capture(own).ok());
            {
                const auto scope = profiler->scope(cuda(own), Brick::attention);
                kernels(own, 1 + static_cast<int>(key % 3));
            }
            const Status ended = cache->end_capture(key);
            ASSERT_TRUE(ended.ok()) << ended.error().message;
            for (std::uint64_t other = 0; other < 4; ++other) {
                const Result<bool> replayed = cache->replay((key + other * 7) % 50, own);
                ASSERT_TRUE(replayed.ok()) << replayed.error().message;
            }
            EXPECT_LE(cache->size(), 16u);
        }
        (void)cuda_driver::driver()->stream_destroy(own);
    };
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 8; ++i) {
        threads.emplace_back(work, i + 1);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    vgpu::run_dry();
    const ReplayReport found = report();
    std::uint64_t captures = 0;
    for (const ReplayRow& row : found.graphs) {
        captures += row.captures;
    }
    EXPECT_EQ(captures, 1'000u);
}

/// Queues of streams belong to the whole process and read the machine's clock.
class CudaMetrics : public CudaGraphs {
  protected:
    [[nodiscard]] vgpu::Config world() const override {
        vgpu::Config config;
        config.time = vgpu::Time::real_time;
        return config;
    }
};

TEST_F(CudaMetrics, count_what_the_recording_has_of_graphs_and_queues) {
    const std::string file = path + ".prom";
    vgpu::KernelModel slow;
    slow.min_ns = slow.max_ns = 4'000'000;
    vgpu::kernel("gemm", slow);
    profiler = std::make_unique<Profiler>(Config::parse("on,device.every=1,out=" + path + ",metrics=" + file));
    ASSERT_TRUE(profiler->status().ok());
    cache = std::make_unique<CudaGraphCache>(profiler.get());
    capture(8, 1);
    replay(8, 3);
    replay(9, 2);
    for (int i = 0; i < 5; ++i) {
        {
            PLUMB_STEP(*profiler, cuda(stream), Phase::decode, tokens(1));
            PLUMB_BRICK(*profiler, cuda(stream), Brick::lm_head);
            kernels(stream, 1);
            vgpu::run_dry();
        }
        ASSERT_TRUE(profiler->flush().ok());
    }
    for (int i = 0; i < 60;
         ++i) { // a pair of the device's clock each time: on a busy machine many are taken with interruptions
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        ASSERT_TRUE(profiler->flush().ok());
    }
    cache.reset();
    profiler.reset();
    const std::string text = support::text_of_file(file);
    auto found = metrics::series_of(text);
    EXPECT_EQ(found["plumb_graph_replays_total"], 3);
    EXPECT_EQ(found["plumb_graph_eager_steps_total{reason=\"never captured\"}"], 2);
    const Result<Report> report = report_recording(path);
    ASSERT_TRUE(report.ok()) << report.error().message;
    std::size_t sources = 0;
    for (const TrackSummary& track : report->tracks) {
        if (!track.device || track.source != "cuda_event") {
            continue;
        }
        ++sources;
        const std::string labels = "{brick=\"lm_head\",phase=\"decode\",source=\"cuda_event\"}";
        EXPECT_EQ(found["plumb_brick_calls_total" + labels], 5) << text;
        EXPECT_EQ(track.scopes, 5u);
        EXPECT_NEAR(found["plumb_brick_seconds_total" + labels], track.total_ns / 1e9, track.total_ns / 1e11);
        EXPECT_GE(found["plumb_brick_seconds_total" + labels], 0.02 * 0.99);
    }
    EXPECT_EQ(sources, 1u);
    std::remove(file.c_str());
}

} // namespace
} // namespace plumb
