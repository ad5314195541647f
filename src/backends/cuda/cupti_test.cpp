// SPDX-License-Identifier: Apache-2.0
// Kernel records of the stand-in libcupti.so against the virtual GPU's truth.
#include "backends/cuda/cupti.hpp"

#include <dlfcn.h>

#include "backends/cuda/bench_testing.hpp"
#include "backends/cuda/cupti_types.hpp"

namespace plumb::backends::cuda {
namespace {

CuptiOptions stand_in() {
    CuptiOptions options;
    options.libraries = {PLUMB_VIRTUAL_CUPTI};
    options.host_clock = &vgpu::host_clock();
    return options;
}

template <class Function>
Function* in_stand_in(const char* name) {
    return reinterpret_cast<Function*>(dlsym(dlopen(PLUMB_VIRTUAL_CUPTI, RTLD_NOW), name));
}

TEST(Cupti, kernels_of_eager_steps_and_of_replays_have_their_true_times_and_nodes) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(stand_in());
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    bench.kernel(stream, 10'000);
    ASSERT_EQ(bench.calls().stream_begin_capture(stream, CaptureMode::relaxed), CuResult::success);
    bench.kernel(stream, 20'000);
    Graph graph = nullptr;
    GraphExec exec = nullptr;
    ASSERT_EQ(bench.calls().stream_end_capture(stream, &graph), CuResult::success);
    ASSERT_EQ(bench.calls().graph_instantiate(&exec, graph, 0), CuResult::success);
    ASSERT_EQ(bench.calls().graph_launch(exec, stream), CuResult::success);
    vgpu::run_dry();
    const Result<KernelTrace> trace = (*reader)->stop();
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    ASSERT_EQ(trace->kernels.size(), 2u);
    EXPECT_EQ(trace->missing_origins, "");
    std::vector<vgpu::Operation> truth;
    for (const vgpu::Operation& operation : vgpu::operations()) {
        if (operation.kind == vgpu::OpKind::kernel) {
            truth.push_back(operation);
        }
    }
    ASSERT_EQ(truth.size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(trace->kernels[i].name, truth[i].name);
        EXPECT_EQ(static_cast<std::int64_t>(trace->kernels[i].begin_ns), truth[i].start_ns);
        EXPECT_EQ(static_cast<std::int64_t>(trace->kernels[i].end_ns), truth[i].end_ns);
    }
    EXPECT_EQ(trace->kernels[0].graph_node_id, 0u);
    ASSERT_NE(trace->kernels[1].graph_node_id, 0u);
    EXPECT_EQ(trace->origins.at(trace->kernels[1].graph_node_id), truth[1].node);
    EXPECT_EQ(trace->untimed + trace->backwards + trace->beyond_bound + trace->dropped, 0u);
}

TEST(Cupti, one_reader_reads_at_a_time_and_another_may_follow) {
    VirtualBench bench;
    Result<std::unique_ptr<CuptiReader>> first = CuptiReader::start(stand_in());
    ASSERT_TRUE(first.ok());
    const auto second = CuptiReader::start(stand_in());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::already_exists);
    first->reset();
    EXPECT_TRUE(CuptiReader::start(stand_in()).ok());
}

TEST(Cupti, a_second_reading_has_true_times_and_nothing_of_the_first_one) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    for (int reading = 0; reading < 3; ++reading) {
        Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(stand_in());
        ASSERT_TRUE(reader.ok()) << reader.error().message;
        bench.kernel(stream, 10'000);
        vgpu::run_dry();
        const vgpu::Operation truth = vgpu::operations().back();
        const Result<KernelTrace> trace = (*reader)->stop();
        ASSERT_TRUE(trace.ok()) << trace.error().message;
        EXPECT_EQ(trace->outside, 0u);
        EXPECT_GT(trace->version, 0u);
        ASSERT_EQ(trace->kernels.size(), 1u) << reading;
        EXPECT_EQ(static_cast<std::int64_t>(trace->kernels[0].begin_ns), truth.start_ns);
        EXPECT_EQ(static_cast<std::int64_t>(trace->kernels[0].end_ns), truth.end_ns);
        bench.kernel(stream, 10'000); // of nobody's reading
        vgpu::run_dry();
    }
}

TEST(Cupti, kernels_whose_times_are_spoiled_are_counted_and_left_out) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(stand_in());
    ASSERT_TRUE(reader.ok());
    const auto again =
        in_stand_in<cupti::CuptiResult(cupti::TimestampFunction)>("cuptiActivityRegisterTimestampCallback");
    ASSERT_EQ(again([] { return static_cast<std::uint64_t>(vgpu::now_ns()); }), cupti::CuptiResult::success);
    bench.kernel(stream, 10'000);
    bench.kernel(stream, 10'000);
    vgpu::run_dry();
    const Result<KernelTrace> trace = (*reader)->stop();
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->outside, 1u);
    EXPECT_EQ(trace->kernels.size(), 1u);
}

TEST(Cupti, a_process_that_another_tool_traces_is_left_alone) {
    VirtualBench bench;
    void* other = nullptr;
    const auto subscribe = in_stand_in<cupti::CuptiResult(void**, cupti::Callback, void*)>("cuptiSubscribe");
    const auto unsubscribe = in_stand_in<cupti::CuptiResult(void*)>("cuptiUnsubscribe");
    ASSERT_EQ(subscribe(
                  &other, [](void*, std::uint32_t, std::uint32_t, const void*) {}, nullptr),
              cupti::CuptiResult::success);
    const auto refused = CuptiReader::start(stand_in());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::already_exists);
    EXPECT_NE(refused.error().message.find("another tool"), std::string::npos) << refused.error().message;
    ASSERT_EQ(unsubscribe(other), cupti::CuptiResult::success);
    EXPECT_TRUE(CuptiReader::start(stand_in()).ok());
}

TEST(Cupti, what_does_not_fit_is_counted) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    CuptiOptions options = stand_in();
    options.max_kernels = 3;
    Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(options);
    ASSERT_TRUE(reader.ok());
    for (int i = 0; i < 10; ++i) {
        bench.kernel(stream, 1'000);
    }
    vgpu::run_dry();
    const Result<KernelTrace> trace = (*reader)->stop();
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->kernels.size(), 3u);
    EXPECT_EQ(trace->beyond_bound, 7u);
}

TEST(Cupti, C23_a_look_while_the_device_works_leaves_no_kernel_without_a_time) {
    VirtualBench bench;
    const Stream stream = bench.new_stream();
    Result<std::unique_ptr<CuptiReader>> reader = CuptiReader::start(stand_in());
    ASSERT_TRUE(reader.ok());
    bench.kernel(stream, 1'000);
    bench.kernel(stream, 1'000'000);
    vgpu::advance(100'000);
    Result<KernelTrace> trace = (*reader)->take();
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->kernels.size() + trace->untimed, 0u) << "both lie in a buffer that is not complete";
    vgpu::run_dry();
    trace = (*reader)->take();
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->kernels.size(), 2u);
    bench.kernel(stream, 1'000'000);
    trace = (*reader)->stop();
    ASSERT_TRUE(trace.ok());
    EXPECT_EQ(trace->kernels.size(), 0u);
    EXPECT_EQ(trace->untimed, 1u);
    EXPECT_EQ(trace->unusable.size(), 1u) << "whose launch it is is told";
}

TEST(Cupti, a_library_that_is_not_cupti_is_named) {
    CuptiOptions options;
    options.libraries = {"libm.so.6"};
    const auto none = CuptiReader::start(options);
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.error().message.find("libm.so.6"), std::string::npos) << none.error().message;
}

} // namespace
} // namespace plumb::backends::cuda
