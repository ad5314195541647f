// SPDX-License-Identifier: Apache-2.0
// What captured graphs consist of, from the capture on the virtual GPU through the recording to the graph of a step.
#include <algorithm>
#include <thread>

#include "answers/path/path.hpp"
#include "answers/replays/replays.hpp"
#include "engine.hpp"

namespace plumb::cuda_test {
namespace {

/// Layer 3: rms_norm of three kernels, attention of three, of which score and mask run beside each other.
class ForkedEngine {
  public:
    explicit ForkedEngine(const std::string& spec) : engine({}, spec), cache(&engine.profiler()) {
        EXPECT_EQ(calls().stream_create(&side_, cuda::stream_non_blocking), cuda::CuResult::success);
        EXPECT_EQ(calls().event_create(&forked_, 0), cuda::CuResult::success);
        EXPECT_EQ(calls().event_create(&joined_, 0), cuda::CuResult::success);
    }
    static const cuda::Driver& calls() { return Engine::calls(); }

    void capture(const char* last_kernel = "value") {
        ASSERT_TRUE(cache.begin_capture(engine.stream()).ok());
        {
            PLUMB_LAYER(engine.profiler(), 3);
            {
                PLUMB_BRICK(engine.profiler(), engine.queue(), Brick::rms_norm);
                for (const char* name : {"square", "reduce", "scale"}) {
                    engine.kernel(name, 20'000);
                }
            }
            PLUMB_BRICK(engine.profiler(), engine.queue(), Brick::attention);
            engine.kernel("score", 40'000);
            EXPECT_EQ(calls().event_record(forked_, engine.stream()), cuda::CuResult::success);
            EXPECT_EQ(calls().stream_wait_event(side_, forked_, 0), cuda::CuResult::success);
            engine.kernel_on("mask", 30'000, side_);
            engine.kernel(last_kernel, 50'000);
            EXPECT_EQ(calls().event_record(joined_, side_), cuda::CuResult::success);
            EXPECT_EQ(calls().stream_wait_event(engine.stream(), joined_, 0), cuda::CuResult::success);
        }
        engine.kernel("outside", 5'000);
        ASSERT_TRUE(cache.end_capture(graph_key).ok());
    }
    void replay() {
        PLUMB_STEP(engine.profiler(), engine.queue(), Phase::decode, tokens(1), kv_length(1));
        const Result<bool> done = cache.replay(graph_key, engine.stream());
        ASSERT_TRUE(done.ok() && *done);
        engine.wait();
        ++steps;
    }
    /// Until the step that is looked at has times of a replay in it, or far too often.
    PathReport sampled_path() {
        for (int round = 0; round < 300; ++round) {
            for (int i = 0; i < 64; ++i) {
                replay();
            }
            PathReport report = path();
            const auto& all = report.graph.all();
            if (std::any_of(all.begin(), all.end(), [](const GraphNode& node) {
                    return node.device && node.timed && node.kind == NodeKind::brick;
                })) {
                return report;
            }
            std::this_thread::yield();
        }
        ADD_FAILURE() << "no replay was sampled";
        return {};
    }
    PathReport path(const PathOptions& options = {}) {
        EXPECT_TRUE(engine.profiler().flush().ok());
        Result<PathReport> report = path_recording(Engine::path(), options);
        EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.error().message);
        return report.ok() ? *std::move(report) : PathReport{};
    }

    Engine engine;
    CudaGraphCache cache;
    std::uint64_t steps = 0;

  private:
    cuda::Stream side_ = nullptr;
    cuda::Event forked_ = nullptr, joined_ = nullptr;
};

NodeId kernel(const PathReport& report, const std::string& name) {
    NodeId found = no_node;
    for (NodeId id = 0; id < report.graph.size(); ++id) {
        if (report.graph[id].kind == NodeKind::kernel && report.graph.name_of(id) == name) {
            EXPECT_EQ(found, no_node) << name << " is there twice";
            found = id;
        }
    }
    EXPECT_NE(found, no_node) << name;
    return found;
}

std::string place_of(const PathReport& report, const std::string& name) {
    std::string text;
    for (NodeId id = report.graph[kernel(report, name)].parent; id != no_node; id = report.graph[id].parent) {
        text += (text.empty() ? "" : ", ") +
                (report.graph[id].kind == NodeKind::step ? std::string("step") : report.graph.name_of(id));
    }
    return text;
}

bool depends(const PathReport& report, const std::string& earlier, const std::string& later) {
    const NodeId from = kernel(report, earlier), to = kernel(report, later);
    const ExecGraph& graph = report.graph;
    for (std::uint32_t row = 0; row < graph.rows(); ++row) {
        for (std::uint64_t e = graph.offsets()[row]; e < graph.offsets()[row + 1]; ++e) {
            if (graph.node_of_row(row) == from && graph.node_of_row(graph.targets()[e]) == to) {
                return true;
            }
        }
    }
    return false;
}

void expect_forked(const PathReport& report) {
    for (const char* name : {"square", "reduce", "scale"}) {
        EXPECT_EQ(place_of(report, name), "rms_norm, layer 3, step");
    }
    for (const char* name : {"score", "mask", "value"}) {
        EXPECT_EQ(place_of(report, name), "attention, layer 3, step");
    }
    EXPECT_EQ(place_of(report, "outside"), "step");
    EXPECT_EQ(report.graph[kernel(report, "mask")].layer, 3u);
    EXPECT_TRUE(depends(report, "square", "reduce"));
    EXPECT_TRUE(depends(report, "score", "mask"));
    EXPECT_TRUE(depends(report, "score", "value"));
    EXPECT_FALSE(depends(report, "mask", "value")) << "they run beside each other";
    EXPECT_TRUE(depends(report, "mask", "outside")) << "what joins them";
    EXPECT_TRUE(depends(report, "value", "outside"));
    EXPECT_EQ(report.host_launches, 1u);
    EXPECT_EQ(report.graph_kernels, 7u);
    EXPECT_DOUBLE_EQ(*report.launches_per_token.value, 8);
}

TEST(GraphPath, F6_kernels_inside_sampled_replays_have_names_bricks_layers_and_edges) {
    ForkedEngine forked("warmup=0,graph.every=4");
    forked.capture();
    const PathReport report = forked.sampled_path();
    expect_forked(report);
    EXPECT_NE(render_dot(report.graph, report.analysis).find("label=\"mask, n/a, grid 1x1x1"), std::string::npos);
    EXPECT_LE(static_cast<double>(report.analysis.length_ns), report.span_ns);
    EXPECT_GT(report.analysis.length_ns, 150'000) << "60 us, and 90 of the longer branch";
    EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
}

TEST(GraphPath, a_graph_that_is_never_sampled_is_there_with_all_its_kernels) {
    ForkedEngine forked("warmup=0,graph.stamps=off");
    forked.capture();
    for (int i = 0; i < 20; ++i) {
        forked.replay();
    }
    const PathReport report = forked.path();
    expect_forked(report);
    for (const GraphNode& node : report.graph.all()) {
        EXPECT_FALSE(node.kind == NodeKind::kernel && node.timed);
    }
}

TEST(GraphPath, a_key_captured_anew_shows_the_nodes_of_the_graph_that_ran) {
    ForkedEngine forked("warmup=0,graph.every=4");
    forked.capture("value_before");
    static_cast<void>(forked.sampled_path());
    forked.capture("value");
    for (int round = 0; round < 300; ++round) {
        for (int i = 0; i < 64; ++i) {
            forked.replay();
        }
        EXPECT_TRUE(forked.engine.profiler().flush().ok());
        const Result<ReplayReport> replays = read_replays({Engine::path()});
        ASSERT_TRUE(replays.ok());
        if (replays->graphs.at(0).sites_timed != 0) {
            break;
        }
    }
    PathOptions options;
    options.step = forked.steps - 1;
    const PathReport report = forked.path(options);
    EXPECT_EQ(place_of(report, "value"), "attention, layer 3, step");
    for (NodeId id = 0; id < report.graph.size(); ++id) {
        EXPECT_NE(report.graph.name_of(id), "value_before");
    }
}

} // namespace
} // namespace plumb::cuda_test
