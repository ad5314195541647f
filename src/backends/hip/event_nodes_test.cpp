// SPDX-License-Identifier: Apache-2.0
// Whether event nodes of graphs can be trusted: what is tried before anybody does, by the virtual GPU's HIP face.
#include "backends/cuda/event_nodes.hpp"

#include "backends/hip/bench_testing.hpp"

namespace plumb::backends::hip {
namespace {

std::shared_ptr<cuda::Timeline> timeline_of(const HipBench& bench) {
    auto made = cuda::timeline_of(*driver(), bench.stream, &vgpu::host_clock());
    EXPECT_TRUE(made.ok()) << (made ? "" : made.error().message);
    return made ? *made : nullptr;
}

TEST(HipEventNodes, where_they_read_well_they_are_trusted_and_tried_once) {
    HipBench bench;
    const std::size_t alive = vgpu::alive().graphs + vgpu::alive().execs;
    const auto timeline = timeline_of(bench);
    EXPECT_TRUE(timeline->event_nodes().ok()) << timeline->event_nodes().error().message;
    const std::uint64_t launches = vgpu::calls("cuGraphLaunch");
    EXPECT_EQ(launches, 2u) << "the second replay has to stamp anew";
    EXPECT_TRUE(timeline->event_nodes().ok());
    EXPECT_EQ(vgpu::calls("cuGraphLaunch"), launches);
    EXPECT_EQ(vgpu::alive().graphs + vgpu::alive().execs, alive);
    EXPECT_EQ(vgpu::synchronising_calls(), 0u);
}

TEST(HipEventNodes, F1_each_way_in_which_they_cannot_be_read_is_unsupported_with_its_reason) {
    const std::pair<vhip::EventNodes, const char*> ways[] = {
        {vhip::EventNodes::unreadable, "cannot be read (hipEventElapsedTime"},
        {vhip::EventNodes::never, "cannot be read (the device has not finished"},
        {vhip::EventNodes::no_number, "cannot be read (no number came)"},
        {vhip::EventNodes::stand_still, "follow each other read 0"},
        {vhip::EventNodes::run_back, "follow each other read -"},
        {vhip::EventNodes::stale, "keep the times of an earlier replay"},
    };
    for (const auto& [way, words] : ways) {
        HipBench bench;
        vhip::event_nodes(way);
        const auto timeline = timeline_of(bench);
        const Status tried = timeline->event_nodes();
        ASSERT_FALSE(tried.ok()) << words;
        EXPECT_EQ(tried.error().code, ErrorCode::unsupported);
        EXPECT_NE(tried.error().message.find(words), std::string::npos) << tried.error().message;
        EXPECT_NE(tried.error().message.find("graphs are replayed plainly"), std::string::npos);
        vhip::event_nodes(vhip::EventNodes::work);
        EXPECT_FALSE(timeline->event_nodes().ok()) << "it is not tried again";
    }
}

TEST(HipEventNodes, a_call_that_fails_is_named_and_leaves_nothing_behind) {
    for (const char* call :
         {"cuGraphCreate", "cuGraphAddEventRecordNode", "cuGraphInstantiateWithFlags", "cuGraphLaunch"}) {
        HipBench bench;
        const auto timeline = timeline_of(bench);
        const vgpu::Alive before = vgpu::alive();
        vgpu::fail(call, CuResult::not_supported);
        const Status tried = timeline->event_nodes();
        ASSERT_FALSE(tried.ok()) << call;
        EXPECT_EQ(tried.error().code, ErrorCode::unsupported) << call;
        EXPECT_EQ(tried.error().message.find(hip_vendor.symbol_of(call)), 0u) << tried.error().message;
        EXPECT_EQ(vgpu::alive().graphs, before.graphs) << call;
        EXPECT_EQ(vgpu::alive().execs, before.execs) << call;
    }
}

TEST(HipEventNodes, a_busy_device_and_a_capture_leave_the_question_open) {
    HipBench bench;
    const auto timer = bench.timer(); // its captures are seen
    const auto timeline = timeline_of(bench);
    ASSERT_EQ(hipStreamBeginCapture(bench.stream, cuda::CaptureMode::relaxed), CuResult::success);
    EXPECT_EQ(timeline->event_nodes().error().code, ErrorCode::pending);
    EXPECT_EQ(vhip::questions_in_captures(), 0u);
    cuda::Graph graph = nullptr;
    ASSERT_EQ(hipStreamEndCapture(bench.stream, &graph), CuResult::success) << "the capture lives";
    EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
    bench.kernel(100'000'000'000, timeline->stream()); // longer than anybody waits
    EXPECT_EQ(timeline->event_nodes().error().code, ErrorCode::pending);
    vgpu::run_dry();
    EXPECT_TRUE(timeline->event_nodes().ok());
}

/// The virtual GPU's clock; at one of its readings somebody else begins a capture.
class CapturingClock final : public HostClock {
  public:
    std::uint64_t now_ticks() const noexcept override { return vgpu::host_clock().now_ticks(); }
    std::int64_t now_ns() const noexcept override {
        if (readings_left_ > 0 && --readings_left_ == 0) {
            EXPECT_EQ(hipStreamBeginCapture(stream_, cuda::CaptureMode::relaxed), CuResult::success);
        }
        return vgpu::host_clock().now_ns();
    }
    void capture_at(int reading, cuda::Stream stream) {
        readings_left_ = reading;
        stream_ = stream;
    }

  private:
    mutable int readings_left_ = 0;
    cuda::Stream stream_ = nullptr;
};

TEST(HipEventNodes, F3_a_capture_that_begins_while_the_trial_waits_lives) {
    static CapturingClock clock; // the timeline may outlive the test
    for (const int reading : {4, 10, 25}) {
        HipBench bench;
        const auto made = cuda::timeline_of(*driver(), bench.stream, &clock);
        ASSERT_TRUE(made.ok()) << made.error().message;
        const auto timer = bench.timer();                 // its captures are seen
        bench.kernel(100'000'000'000, (*made)->stream()); // longer than anybody waits
        clock.capture_at(reading, bench.stream);
        EXPECT_EQ((*made)->event_nodes().error().code, ErrorCode::pending) << reading;
        EXPECT_EQ(vhip::questions_in_captures(), 0u) << reading;
        cuda::Graph graph = nullptr;
        ASSERT_EQ(hipStreamEndCapture(bench.stream, &graph), CuResult::success) << "the capture lives";
        EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
        vgpu::run_dry();
    }
}

TEST(HipEventNodes, M8_a_timer_says_whether_graphs_can_be_probed) {
    const auto graph_probes = [](const QueueTimer& timer) {
        for (const Capability& capability : timer.capabilities()) {
            if (capability.name == "graph_probes") {
                return capability.supported ? std::string("supported") : capability.reason;
            }
        }
        return std::string("absent");
    };
    HipBench bench;
    EXPECT_EQ(graph_probes(*bench.timer()), "supported");
    vhip::reset();
    HipBench other;
    vhip::event_nodes(vhip::EventNodes::stand_still);
    EXPECT_NE(graph_probes(*other.timer()).find("read 0"), std::string::npos);
    const Result<Driver> bare = load_driver(PLUMB_BARE_VIRTUAL_HIP);
    ASSERT_TRUE(bare.ok()) << bare.error().message;
    const auto timer = other.timer(other.stream, *bare);
    EXPECT_NE(graph_probes(*timer).find("has no hipGraphClone, which graph probes need"), std::string::npos)
        << graph_probes(*timer);
    ASSERT_TRUE(load_driver("libamdhip64.so.5").ok());
}

TEST(HipEventNodes, types_of_nodes_are_understood_in_both_of_hips_numberings) {
    for (const int version : {50'220'730, 60'200'000}) {
        HipBench bench;
        vhip::version(version);
        const Result<Driver> loaded = load_driver("libamdhip64.so.5");
        ASSERT_TRUE(loaded.ok()) << loaded.error().message;
        cuda::Graph graph = nullptr;
        cuda::GraphNode node = nullptr;
        cuda::Event event = nullptr;
        ASSERT_EQ(hipGraphCreate(&graph, 0), CuResult::success);
        ASSERT_EQ(hipEventCreateWithFlags(&event, 0), CuResult::success);
        ASSERT_EQ(hipGraphAddEventRecordNode(&node, graph, nullptr, 0, event), CuResult::success);
        cuda::NodeType type{};
        EXPECT_EQ(loaded->graph_node_get_type(node, &type), CuResult::success);
        EXPECT_EQ(type, cuda::NodeType::event_record) << version;
        EXPECT_EQ(hipGraphDestroy(graph), CuResult::success);
        EXPECT_EQ(hipEventDestroy(event), CuResult::success);
    }
    ASSERT_TRUE(load_driver("libamdhip64.so.5").ok());
}

} // namespace
} // namespace plumb::backends::hip
