// SPDX-License-Identifier: Apache-2.0
// Graphs of an engine on the virtual GPU. Its kernel notes the parameter that it was launched with: a twin that is older than its
// executable shows.
#include "attach/cudart/graphs.hpp"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <vector>

#include "plumb/plumb.hpp"
#include "virtual_gpu/engine_driver.hpp"

namespace plumb::attach::cudart {
namespace {

vgpu::EngineDriver* engine_calls = nullptr;

int launch_plainly(CUgraphExec_st* executable, CUstream_st* stream) {
    return static_cast<int>(engine_calls->graph_launch(reinterpret_cast<vgpu::GraphExec>(executable),
                                                       reinterpret_cast<vgpu::Stream>(stream)));
}

class CudartGraphs : public testing::Test {
  protected:
    void SetUp() override {
        engine_calls = &engine_.cu;
        vgpu::kernel("note", {{8}, 20'000, 20'000, [this](const vgpu::KernelRun& run) {
                                  noted_.push_back(run.param<std::uint64_t>(0));
                              }});
        Config config;
        config.on = true;
        config.out = "none";
        config.clock = &vgpu::host_clock();
        config.graph.stamps = GraphStamps::events;
        config.graph.every = 2;
        profiler_ = std::make_unique<Profiler>(config);
        ASSERT_TRUE(profiler_->enabled());
        graphs_ = std::make_unique<AttachedGraphs>(*profiler_);
    }
    void TearDown() override {
        graphs_->destroyed(executable_);
        EXPECT_EQ(engine_.cu.graph_exec_destroy(executable_), vgpu::CuResult::success);
        EXPECT_TRUE(profiler_->close().ok());
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    }
    vgpu::Graph capture(std::uint64_t value) {
        vgpu::Graph graph = nullptr;
        EXPECT_EQ(engine_.cu.stream_begin_capture(stream_, vgpu::CaptureMode::relaxed), vgpu::CuResult::success);
        void* parameters[] = {&value};
        EXPECT_EQ(engine_.launch("note", stream_, parameters), vgpu::CuResult::success);
        EXPECT_EQ(engine_.cu.stream_end_capture(stream_, &graph), vgpu::CuResult::success);
        AttachedGraphs::a_graph_changed();
        return graph;
    }
    void instantiate(std::uint64_t value) {
        const vgpu::Graph graph = capture(value);
        ASSERT_EQ(engine_.cu.graph_instantiate(&executable_, graph, 0), vgpu::CuResult::success);
        graphs_->instantiated(executable_, graph);
        ASSERT_EQ(engine_.cu.graph_destroy(graph), vgpu::CuResult::success);
        AttachedGraphs::a_graph_changed();
    }
    void update(std::uint64_t value) {
        const vgpu::Graph graph = capture(value);
        vgpu::ExecUpdateInfo info{};
        ASSERT_EQ(engine_.cu.graph_exec_update_v12000(executable_, graph, &info), vgpu::CuResult::success);
        graphs_->updated(executable_, graph);
        ASSERT_EQ(engine_.cu.graph_destroy(graph), vgpu::CuResult::success);
        AttachedGraphs::a_graph_changed();
    }
    /// What the kernel noted in so many launches.
    std::set<std::uint64_t> launch(int times) {
        noted_.clear();
        for (int i = 0; i < times; ++i) {
            EXPECT_EQ(graphs_->launch(executable_, stream_, launch_plainly), 0);
            vgpu::run_dry();
        }
        EXPECT_EQ(noted_.size(), static_cast<std::size_t>(times));
        return {noted_.begin(), noted_.end()};
    }
    static std::uint64_t instantiated() { return vgpu::calls("cuGraphInstantiateWithFlags"); }
    /// Launches until a twin was instantiated, which a thread of ours does: more than `before`.
    void launch_until_there_is_a_twin(std::uint64_t before) {
        for (int i = 0; i < 10'000 && instantiated() == before; ++i) {
            (void)launch(1);
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ASSERT_GT(instantiated(), before);
        std::this_thread::sleep_for(std::chrono::milliseconds(20)); // it is handed over behind that call
    }

    vgpu::Engine engine_;
    vgpu::Stream stream_ = engine_.stream();
    vgpu::GraphExec executable_ = nullptr;
    std::vector<std::uint64_t> noted_;
    std::unique_ptr<Profiler> profiler_;
    std::unique_ptr<AttachedGraphs> graphs_;
};

TEST_F(CudartGraphs, C15_no_twin_is_older_than_an_update_of_its_executable) {
    instantiate(1);
    launch_until_there_is_a_twin(instantiated());
    EXPECT_EQ(launch(40), (std::set<std::uint64_t>{1}));
    const std::uint64_t before = instantiated();
    update(2);
    EXPECT_EQ(launch(40), (std::set<std::uint64_t>{2}));
    launch_until_there_is_a_twin(before);
    EXPECT_EQ(launch(40), (std::set<std::uint64_t>{2}));
    EXPECT_EQ(graphs_->counts().updated, 1u);
}

TEST_F(CudartGraphs, C15_no_twin_is_older_than_a_change_that_nobody_can_read_back) {
    instantiate(1);
    launch_until_there_is_a_twin(instantiated());
    graphs_->changed(executable_, "cudaGraphExecKernelNodeSetParams");
    const std::uint64_t counted = graphs_->counts().launched;
    EXPECT_EQ(launch(40), (std::set<std::uint64_t>{1}));
    EXPECT_EQ(graphs_->counts().launched, counted) << "it went through a probe";
}

TEST_F(CudartGraphs, that_are_updated_with_what_they_were_made_of_stay_as_they_are) {
    const vgpu::Graph graph = capture(1);
    ASSERT_EQ(engine_.cu.graph_instantiate(&executable_, graph, 0), vgpu::CuResult::success);
    graphs_->instantiated(executable_, graph);
    const std::uint64_t clones = vgpu::calls("cuGraphClone");
    graphs_->updated(executable_, graph);
    EXPECT_EQ(vgpu::calls("cuGraphClone"), clones);
    AttachedGraphs::a_graph_changed(); // and it might be this one
    graphs_->updated(executable_, graph);
    EXPECT_EQ(vgpu::calls("cuGraphClone"), clones + 1);
    ASSERT_EQ(engine_.cu.graph_destroy(graph), vgpu::CuResult::success);
}

TEST_F(CudartGraphs, that_are_updated_before_each_launch_are_left_alone) {
    instantiate(1);
    for (std::uint64_t value = 2; value < 40; ++value) {
        update(value);
        EXPECT_EQ(launch(1), (std::set<std::uint64_t>{value}));
    }
    EXPECT_LT(graphs_->counts().launched, 20u);
}

TEST_F(CudartGraphs, are_launched_plainly_where_the_thread_has_no_context) {
    instantiate(1);
    (void)launch(1);
    const std::uint64_t counted = graphs_->counts().launched;
    std::thread([this] {
        EXPECT_EQ(graphs_->launch(executable_, stream_,
                                  [](CUgraphExec_st* executable, CUstream_st* stream) {
                                      vgpu::Context context = nullptr; // as libcudart does
                                      engine_calls->primary_ctx_retain(&context, 0);
                                      engine_calls->ctx_push_current(context);
                                      const int result = launch_plainly(executable, stream);
                                      engine_calls->ctx_pop_current(&context);
                                      engine_calls->primary_ctx_release(0);
                                      return result;
                                  }),
                  0);
    }).join();
    vgpu::run_dry();
    EXPECT_EQ(graphs_->counts().launched, counted);
}

} // namespace
} // namespace plumb::attach::cudart
