// SPDX-License-Identifier: Apache-2.0
// The stand-in libcupti.so, found and read as a program would.
#include "virtual_gpu/cupti.hpp"

#include <gtest/gtest.h>

#include <map>

#include "virtual_gpu/engine_driver.hpp"

namespace plumb::vgpu {
namespace {

using cupti::KernelRecord;
using cupti::Result;

constexpr Result fine = Result::success;
std::vector<KernelRecord> received;

void* library() {
    static void* const found = dlopen(PLUMB_VGPU_CUPTI, RTLD_NOW);
    return found;
}

template <class... Arguments>
Result ask(const char* name, Arguments... arguments) {
    const auto function = reinterpret_cast<Result (*)(Arguments...)>(dlsym(library(), name));
    return function == nullptr ? Result::not_compatible : function(arguments...);
}

void request(std::uint8_t** buffer, std::size_t* bytes, std::size_t* most) {
    static std::uint64_t storage[1024];
    *buffer = reinterpret_cast<std::uint8_t*>(storage);
    *bytes = sizeof storage;
    *most = 0;
}

void complete(CUctx_st*, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
    void* record = nullptr;
    while (ask("cuptiActivityGetNextRecord", buffer, valid, &record) == fine) {
        received.push_back(*static_cast<KernelRecord*>(record));
    }
}

std::uint64_t profiler_clock() { return host_clock().now_ticks(); }

// Which executable node was cloned from which node.
std::map<std::uint64_t, GraphNode> cloned;

void note_clone(void*, std::uint32_t, std::uint32_t id, const void* data) {
    const auto& graph =
        *static_cast<const cupti::GraphData*>(static_cast<const cupti::ResourceData*>(data)->descriptor);
    std::uint64_t node = 0;
    if (id == cupti::resource_node_cloned && ask("cuptiGetGraphNodeId", graph.node, &node) == fine) {
        cloned[node] = graph.original_node;
    }
}

TEST(Cupti, gives_kernels_with_their_true_times_and_nodes) {
    ASSERT_NE(library(), nullptr) << dlerror();
    Engine engine;
    received.clear();
    cloned.clear();
    void* subscriber = nullptr;
    ASSERT_EQ((ask<void**, cupti::Callback, void*>("cuptiSubscribe", &subscriber, note_clone, nullptr)), fine);
    ASSERT_EQ(ask("cuptiEnableDomain", 1u, subscriber, cupti::domain_resource), fine);
    ASSERT_EQ(ask("cuptiActivityRegisterTimestampCallback", &profiler_clock), fine);
    ASSERT_EQ(ask("cuptiActivityRegisterCallbacks", &request, &complete), fine);
    const Stream stream = engine.stream();
    kernel("eager", {{}, 1'000'000, 1'000'000, {}});
    engine.launch("before", stream);
    ASSERT_EQ(ask("cuptiActivityEnable", cupti::kind_concurrent_kernel), fine);
    engine.launch("eager", stream);
    engine.cu.stream_begin_capture(stream, CaptureMode::relaxed);
    engine.launch("replayed", stream);
    Graph graph = nullptr;
    engine.cu.stream_end_capture(stream, &graph);
    GraphExec exec = nullptr;
    engine.cu.graph_instantiate(&exec, graph, 0);
    engine.cu.graph_launch(exec, stream);
    ASSERT_EQ(ask("cuptiActivityFlushAll", 0u), fine);
    EXPECT_TRUE(received.empty()); // nothing has ended yet
    run_dry();
    ASSERT_EQ(ask("cuptiActivityFlushAll", 0u), fine);
    ASSERT_EQ(ask("cuptiUnsubscribe", subscriber), fine);
    ASSERT_EQ(received.size(), 2u);
    EXPECT_STREQ(received[0].name, "eager");
    EXPECT_EQ(received[0].graph_node_id, 0u);
    EXPECT_STREQ(received[1].name, "replayed");
    const Operation truth = operations().back();
    EXPECT_EQ(static_cast<std::int64_t>(received[1].start), truth.start_ns);
    EXPECT_EQ(static_cast<std::int64_t>(received[1].end), truth.end_ns);
    EXPECT_EQ(received[1].graph_id, truth.graph_id);
    EXPECT_EQ(received[1].block[0], 32);
    const std::uint64_t node = received[1].graph_node_id;
    EXPECT_EQ(cloned[node], truth.node);
}

TEST(Cupti, keeps_a_buffer_until_its_kernels_have_ended_and_forced_gives_those_that_run_no_time) {
    ASSERT_NE(library(), nullptr) << dlerror();
    Engine engine;
    received.clear();
    ASSERT_EQ(ask("cuptiActivityRegisterTimestampCallback", &profiler_clock), fine);
    ASSERT_EQ(ask("cuptiActivityRegisterCallbacks", &request, &complete), fine);
    ASSERT_EQ(ask("cuptiActivityEnable", cupti::kind_concurrent_kernel), fine);
    const Stream stream = engine.stream();
    kernel("short", {{}, 1'000, 1'000, {}});
    kernel("long", {{}, 1'000'000, 1'000'000, {}});
    engine.launch("short", stream);
    engine.launch("long", stream);
    advance(100'000);
    ASSERT_EQ(ask("cuptiActivityFlushAll", 0u), fine);
    EXPECT_TRUE(received.empty());
    ASSERT_EQ(ask("cuptiActivityFlushAll", cupti::flush_forced), fine);
    ASSERT_EQ(received.size(), 2u);
    EXPECT_GT(received[0].end, received[0].start);
    EXPECT_STREQ(received[1].name, "long");
    EXPECT_EQ(received[1].start, 0u);
    EXPECT_EQ(received[1].end, 0u);
    run_dry();
    ASSERT_EQ(ask("cuptiActivityFlushAll", cupti::flush_forced), fine);
    EXPECT_EQ(received.size(), 2u) << "it never comes again";
    ASSERT_EQ(ask("cuptiActivityDisable", cupti::kind_concurrent_kernel), fine);
}

} // namespace
} // namespace plumb::vgpu
