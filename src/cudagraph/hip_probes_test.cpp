// SPDX-License-Identifier: Apache-2.0
// Probes of HIP graphs: the implementation is CUDA's, over HIP's table, on the virtual GPU's HIP face.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "backends/hip/driver.hpp"
#include "cudagraph/probes.hpp"
#include "plumb/hip.hpp"
#include "record/recorder_testing.hpp"
#include "virtual_hip/control.hpp"
#include "virtual_hip/hip.hpp"

namespace plumb::cudagraph {
namespace {

using vgpu::CuResult;

constexpr std::uint16_t first_name = 1000;

struct HipGraph {
    vgpu::Graph graph = nullptr;
    vgpu::GraphExec exec = nullptr;
};

class HipProbes : public testing::Test {
  protected:
    HipProbes() {
        vhip::reset();
        EXPECT_TRUE(backends::hip::load_driver("libamdhip64.so.5").ok()); // its node types are learnt anew
        EXPECT_EQ(hipModuleLoadData(&module_, "any image"), CuResult::success);
        EXPECT_EQ(hipStreamCreateWithFlags(&stream_, 1), CuResult::success);
        queue_ = hip(stream_);
        sample_every(4);
    }

    void sample_every(std::uint64_t every) {
        ProbeOptions options;
        options.api = GraphApi::hip;
        options.every = every;
        options.host_clock = &vgpu::host_clock();
        probes_ = std::make_unique<GraphProbes>(recorder_, options);
    }

    void kernel(std::int64_t ns) {
        const std::string name = "k" + std::to_string(ns);
        vgpu::KernelModel model;
        model.min_ns = model.max_ns = ns;
        vgpu::kernel(name, model);
        vgpu::Function function = nullptr;
        EXPECT_EQ(hipModuleGetFunction(&function, module_, name.c_str()), CuResult::success);
        EXPECT_EQ(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr), CuResult::success);
    }
    /// Three bricks, one kernel each: 20, 50 and 80 us.
    HipGraph capture() {
        HipGraph made;
        EXPECT_EQ(hipStreamBeginCapture(stream_, vgpu::CaptureMode::relaxed), CuResult::success);
        for (std::uint16_t i = 0; i < 3; ++i) {
            const Scope brick = recorder_.scope(queue_, Name{static_cast<std::uint16_t>(first_name + i)});
            kernel(length_of(i));
        }
        EXPECT_EQ(hipStreamEndCapture(stream_, &made.graph), CuResult::success);
        EXPECT_EQ(hipGraphInstantiateWithFlags(&made.exec, made.graph, 0), CuResult::success);
        return made;
    }
    static std::int64_t length_of(std::uint16_t scope) { return 20'000 + 30'000 * scope; }

    void collect() {
        drain::FeedRound round;
        probes_->publish_all();
        probes_->collect(round);
        tracks_.insert(tracks_.end(), round.tracks.begin(), round.tracks.end());
        samples_.insert(samples_.end(), round.samples.begin(), round.samples.end());
        row_ = round.graphs.empty() ? row_ : round.graphs.back();
    }
    void replay(HipGraphProbe& probe, const HipGraph& graph, int count) {
        for (int i = 0; i < count; ++i) {
            EXPECT_TRUE(probe.launch(graph.exec, stream_).ok());
            vgpu::run_dry();
            collect();
            if (i < 4) {
                EXPECT_TRUE(probes_->settle(std::chrono::seconds(20)));
            }
        }
    }
    HipGraphProbe captured(const HipGraph& graph) {
        Result<std::shared_ptr<Probe>> probe = probes_->captured(7, graph.graph);
        EXPECT_TRUE(probe.ok()) << (probe ? "" : probe.error().message);
        return probe ? HipGraphProbe(share(*probe)) : HipGraphProbe();
    }

    record::TestRecorder recorder_{record::TestOptions{}};
    std::unique_ptr<GraphProbes> probes_;
    vgpu::Stream stream_ = nullptr;
    Queue queue_;
    std::vector<drain::FeedTrack> tracks_;
    std::vector<drain::DeviceSample> samples_;
    recording::GraphInfo row_;

  private:
    vgpu::Module module_ = nullptr;
};

TEST_F(HipProbes, F3_scopes_of_a_captured_hip_graph_are_timed_inside_its_replays) {
    const HipGraph graph = capture();
    HipGraphProbe probe = captured(graph);
    replay(probe, graph, 60);
    EXPECT_EQ(row_.twin, "event") << row_.twin_reason;
    EXPECT_EQ(row_.replays, 60u);
    EXPECT_EQ(row_.nodes, (std::vector<recording::NamedCount>{{"kernel", 3}})) << "HIP counts node types from 1";
    ASSERT_EQ(tracks_.size(), 1u);
    EXPECT_EQ(tracks_[0].info.source, "hip_graph_event");
    EXPECT_EQ(tracks_[0].clock_name.find("hip:0"), 0u) << tracks_[0].clock_name;
    ASSERT_GE(samples_.size(), 9u);
    for (const drain::DeviceSample& sample : samples_) {
        const auto truth = static_cast<double>(length_of(static_cast<std::uint16_t>(sample.name - first_name)));
        EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks), truth, 1'900) << sample.name;
    }
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    EXPECT_EQ(vgpu::calls("cuGraphUpload") + vgpu::calls("cuGraphNodeSetEnabled"), 0u) << "HIP 5.2 has neither";
}

TEST_F(HipProbes, F1_where_event_nodes_cannot_be_read_replays_are_plain_and_the_row_says_why) {
    vhip::event_nodes(vhip::EventNodes::unreadable);
    const HipGraph graph = capture();
    HipGraphProbe probe = captured(graph);
    replay(probe, graph, 40);
    EXPECT_EQ(row_.replays, 40u);
    EXPECT_EQ(row_.instrumented, 0u);
    EXPECT_TRUE(samples_.empty());
    EXPECT_TRUE(row_.twin.empty());
    EXPECT_EQ(row_.twin_reason.find("unsupported (the time between event nodes of a graph cannot be read"), 0u)
        << row_.twin_reason;
}

TEST_F(HipProbes, F1_event_nodes_that_pass_the_trial_and_go_wrong_later_give_no_sample_and_a_reason) {
    const std::pair<vhip::EventNodes, const char*> ways[] = {
        {vhip::EventNodes::stale, "unsupported (event nodes of a replay kept the times of an earlier one"},
        {vhip::EventNodes::stand_still, "unsupported (the event nodes of a replay read 0"},
        {vhip::EventNodes::run_back, "unsupported (the event nodes of a replay read -"},
    };
    for (const auto& [way, words] : ways) {
        vhip::event_nodes(vhip::EventNodes::work);
        sample_every(4);
        const HipGraph graph = capture();
        HipGraphProbe probe = captured(graph);
        replay(probe, graph, 40);
        ASSERT_EQ(row_.twin, "event") << row_.twin_reason;
        const std::size_t good = samples_.size();
        EXPECT_GE(good, 6u);
        vhip::event_nodes(way);
        replay(probe, graph, 40);
        EXPECT_EQ(samples_.size(), good) << words;
        EXPECT_TRUE(row_.twin.empty());
        EXPECT_EQ(row_.twin_reason.find(words), 0u) << row_.twin_reason;
        EXPECT_NE(row_.twin_reason.find("later replays are plain"), std::string::npos);
        EXPECT_EQ(row_.replays, 80u);
        const std::uint64_t instrumented = row_.instrumented;
        replay(probe, graph, 20);
        EXPECT_EQ(row_.instrumented, instrumented) << "nothing is instrumented any more";
        samples_.clear();
    }
}

TEST_F(HipProbes, F1_times_that_cannot_be_read_any_more_leave_their_replays_out) {
    for (const vhip::EventNodes way :
         {vhip::EventNodes::unreadable, vhip::EventNodes::never, vhip::EventNodes::no_number}) {
        vhip::event_nodes(vhip::EventNodes::work);
        sample_every(4);
        const HipGraph graph = capture();
        HipGraphProbe probe = captured(graph);
        replay(probe, graph, 40);
        ASSERT_EQ(row_.twin, "event") << row_.twin_reason;
        const std::size_t good = samples_.size();
        vhip::event_nodes(way);
        replay(probe, graph, 40);
        EXPECT_EQ(samples_.size(), good);
        samples_.clear();
    }
}

TEST_F(HipProbes, F1_one_graph_replayed_on_two_streams_in_turn_reads_right_on_both) {
    vgpu::Stream other = nullptr;
    ASSERT_EQ(hipStreamCreateWithFlags(&other, 1), CuResult::success);
    const HipGraph graph = capture();
    HipGraphProbe probe = captured(graph);
    replay(probe, graph, 8);
    for (int i = 0; i < 60; ++i) {
        EXPECT_TRUE(probe.launch(graph.exec, i % 2 == 0 ? other : stream_).ok());
        vgpu::run_dry();
        collect();
    }
    EXPECT_EQ(row_.twin, "event") << row_.twin_reason;
    ASSERT_GE(samples_.size(), 9u);
    for (const drain::DeviceSample& sample : samples_) {
        const auto truth = static_cast<double>(length_of(static_cast<std::uint16_t>(sample.name - first_name)));
        EXPECT_NEAR(static_cast<double>(sample.end_ticks - sample.begin_ticks), truth, 1'900) << sample.name;
    }
}

TEST_F(HipProbes, F3_a_capture_of_another_stream_outlives_every_question_of_the_probes) {
    sample_every(0); // as soon as may be
    const HipGraph graph = capture();
    HipGraphProbe probe = captured(graph);
    vgpu::Stream other = nullptr;
    ASSERT_EQ(hipStreamCreateWithFlags(&other, 1), CuResult::success);
    static_cast<void>(hip(other)); // one that we time: it is spared
    ASSERT_EQ(hipStreamBeginCapture(other, vgpu::CaptureMode::relaxed), CuResult::success);
    replay(probe, graph, 20);
    EXPECT_EQ(vhip::questions_in_captures(), 0u);
    EXPECT_TRUE(row_.twin_reason.empty()) << "nothing is known yet: " << row_.twin_reason;
    vgpu::Graph late = nullptr;
    ASSERT_EQ(hipStreamEndCapture(other, &late), CuResult::success) << "the capture lives";
    replay(probe, graph, 60);
    EXPECT_EQ(row_.twin, "event") << row_.twin_reason;
    EXPECT_FALSE(samples_.empty());
    EXPECT_EQ(hipGraphDestroy(late), CuResult::success);
}

TEST_F(HipProbes, graphs_and_twins_are_given_back) {
    const HipGraph graph = capture();
    {
        HipGraphProbe probe = captured(graph);
        replay(probe, graph, 30);
        EXPECT_GT(vgpu::alive().execs, 1u);
    }
    probes_->evicted(7);
    EXPECT_TRUE(probes_->settle(std::chrono::seconds(20)));
    EXPECT_EQ(vgpu::alive().execs, 1u);
    EXPECT_EQ(vgpu::alive().graphs, 1u);
    EXPECT_TRUE(probes_->status().ok()) << probes_->status().error().message;
}

} // namespace
} // namespace plumb::cudagraph
