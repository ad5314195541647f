// SPDX-License-Identifier: Apache-2.0
// Programmatic launches on the virtual GPU, which lets a kernel so launched start before the one before it has ended.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "decoder/kernels/cuda/cuda_backend.hpp"
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"
#include "decoder/test_support.hpp"
#include "plumb/plumb.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder {
namespace {

class ProgrammaticLaunches : public testing::Test {
  protected:
    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
        kernels();
    }
    void TearDown() override {
        vgpu::configure(before_);
        vgpu::clear_failures();
        EXPECT_EQ(kernels().failure(), "");
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    }
    static cuda::VirtualDecoderKernels& kernels() { return cuda::VirtualDecoderKernels::of_process(); }

    Result<Decoder> load(Graphs graphs, bool programmatic, const std::string& backend = "cuda") {
        Options options;
        options.backend = backend;
        options.graphs = graphs;
        options.programmatic_launch = programmatic;
        options.context = 300;
        options.chunk = 16;
        if (backend == "cuda") {
            options.device = [](const std::string&, const cpu::CpuOptions&, Graphs wanted) {
                return cuda::make_backend(0, wanted, "no PTX");
            };
        }
        return Decoder::load(make_test_model(folder_, "test", Type::f32), options);
    }

    struct Run {
        std::vector<float> logits;
        std::vector<std::int32_t> tokens;
        std::size_t launched = 0, replayed = 0; // kernels that began before the one before them had ended
    };
    Run run(Graphs graphs, bool programmatic) {
        Run out;
        const std::size_t before = vgpu::operation_count();
        Result<Decoder> decoder = load(graphs, programmatic);
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        EXPECT_TRUE(decoder->prefill(decoder->random_prompt(20, 2), off_).ok());
        const Result<std::size_t> done = decoder->decode(4, off_);
        EXPECT_TRUE(done.ok()) << done.error().message;
        out.logits.assign(decoder->logits().begin(), decoder->logits().end());
        out.tokens = decoder->tokens();
        std::map<std::uint64_t, std::int64_t> ends; // of the last kernel, by stream
        const auto all = vgpu::operations();
        const std::size_t count = vgpu::operation_count() - before;
        for (std::size_t i = all.size() - std::min(all.size(), count); i < all.size(); ++i) {
            if (all[i].kind != vgpu::OpKind::kernel) {
                continue;
            }
            std::int64_t& end = ends[all[i].stream_id];
            if (all[i].start_ns < end) {
                ++(all[i].graph_id != 0 ? out.replayed : out.launched);
            }
            end = std::max(end, all[i].end_ns);
        }
        return out;
    }

    vgpu::Config before_ = vgpu::config();
    TestFolder folder_;
    OffRecorder off_;
};

TEST_F(ProgrammaticLaunches, overlap_and_compute_the_same_launched_and_replayed) {
    vgpu::Config slow = before_; // launches come faster than kernels end
    slow.kernel_min_ns = slow.kernel_max_ns = 2'000'000;
    vgpu::configure(slow);
    const Run plain = run(Graphs::verify, false);
    EXPECT_EQ(plain.launched + plain.replayed, 0U);
    const Run launched = run(Graphs::off, true), replayed = run(Graphs::verify, true);
    EXPECT_GT(launched.launched, 100U);
    EXPECT_EQ(launched.replayed, 0U);
    EXPECT_GT(replayed.replayed, 50U);
    for (const Run& one : {launched, replayed}) {
        EXPECT_EQ(one.logits, plain.logits);
        EXPECT_EQ(one.tokens, plain.tokens);
    }
}

TEST_F(ProgrammaticLaunches, in_replays_have_their_bricks_timed) {
    Result<Decoder> decoder = load(Graphs::on, true);
    ASSERT_TRUE(decoder.ok()) << decoder.error().message;
    plumb::Config config;
    config.on = true;
    config.out = "none";
    config.graph.every = 1;
    config.warmup_steps = 0;
    config.clock = &vgpu::host_clock();
    Profiler profiler(config);
    decoder->profile_replays(&profiler);
    ASSERT_TRUE(decoder->prefill(decoder->random_prompt(8, 2), profiler).ok());
    std::set<std::string> timed;
    for (int rounds = 0; timed.size() != 13 && rounds < 25; ++rounds) { // twins are made on another thread
        ASSERT_TRUE(decoder->decode(10, profiler).ok());
        vgpu::run_dry();
        EXPECT_TRUE(profiler.flush(30).ok());
        const Result<Report> report = profiler.snapshot();
        ASSERT_TRUE(report.ok()) << report.error().message;
        for (const Row& row : report->bricks) {
            if (row.key.phase == Phase::decode && row.source.starts_with("cuda_graph")) {
                timed.insert(row.key.name);
            }
        }
    }
    decoder->profile_replays(nullptr);
    EXPECT_EQ(timed.size(), 13U);
}

TEST_F(ProgrammaticLaunches, that_are_not_to_be_had_are_one_sentence) {
    const auto said = [](const auto& made) {
        return made.ok() ? std::string() : made.error().message;
    };
    EXPECT_EQ(
        said(load(Graphs::off, true, "cpu")),
        "only the cuda backend has programmatic launches: leave --programmatic-launch out, or say --backend cuda");
    const std::string refused = "--programmatic-launch needs a driver of CUDA 12.0 or later and a device of compute "
                                "capability 9 or 10; leave it out";
    ASSERT_TRUE(load(Graphs::off, false).ok()); // the profiler asks the driver too, once
    vgpu::fail("cuDriverGetVersion", vgpu::CuResult::unknown);
    EXPECT_EQ(said(load(Graphs::off, true)), refused);
    vgpu::fail("cuDeviceGetAttribute", vgpu::CuResult::unknown, 2); // the first: processors
    EXPECT_EQ(said(load(Graphs::off, true)), refused);
    Result<Decoder> decoder = load(Graphs::off, true);
    ASSERT_TRUE(decoder.ok());
    vgpu::fail("cuLaunchKernelEx", vgpu::CuResult::launch_failed, 3);
    EXPECT_EQ(decoder->prefill(decoder->random_prompt(8, 2), off_).error().message.find("cuLaunchKernelEx answers "),
              0U);
}

} // namespace
} // namespace plumb::decoder
