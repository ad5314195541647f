// SPDX-License-Identifier: Apache-2.0
// Times that kernels write down themselves, on the virtual GPU: those of its ledger.
#include "decoder/kernels/cuda/stamps.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "decoder/kernels/choose.hpp"
#include "decoder/kernels/cuda/cuda_backend.hpp"
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"
#include "decoder/test_support.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder {
namespace {

constexpr cuda::StampSlot slot_of(std::uint64_t begin, std::uint64_t end) { return {~begin, end}; }

TEST(KernelStamps, are_added_up_without_what_two_kernels_share) {
    const cuda::StampSlot slots[] = {slot_of(100, 150), slot_of(140, 170), slot_of(145, 160), slot_of(200, 201)};
    const std::optional<StampedKernels> times = cuda::times_of(slots);
    ASSERT_TRUE(times);
    EXPECT_EQ(times->kernels_ns, 71U);
    EXPECT_EQ(times->stretch_ns, 101U);
}

TEST(KernelStamps, of_a_kernel_that_did_not_run_or_of_none_are_no_times) {
    EXPECT_FALSE(cuda::times_of({}));
    const cuda::StampSlot slots[] = {slot_of(100, 150), {}};
    EXPECT_FALSE(cuda::times_of(slots));
    const cuda::StampSlot backwards[] = {slot_of(100, 99)};
    EXPECT_FALSE(cuda::times_of(backwards));
}

TEST(KernelStamps, beyond_the_last_slot_there_is_none) {
    cuda::StampSlots slots(4096);
    EXPECT_EQ(slots.next(), 4096U);
    EXPECT_EQ(slots.next(), 4096U + sizeof(cuda::StampSlot));
    slots.go_to(cuda::StampSlots::most);
    EXPECT_EQ(slots.next(), 0U);
    EXPECT_EQ(cuda::StampSlots().next(), 0U);
}

/// A step and what its kernels and the ledger say of it.
struct SeenStep {
    Phase phase;
    std::optional<StampedKernels> stamped;
    std::uint64_t kernels_ns = 0, stretch_ns = 0, kernels = 0;
};
std::vector<SeenStep>& seen_steps() {
    static std::vector<SeenStep> only;
    return only;
}
std::int32_t seen_step(State& state, const StepInput& input, Recorder& profiler) {
    const std::size_t before = vgpu::operation_count();
    const std::int32_t token = run_step(state, input, profiler);
    SeenStep seen{input.phase, state.backend->stamped_kernels()};
    std::int64_t first = 0, last = 0;
    const std::vector<vgpu::Operation> operations = vgpu::operations();
    for (std::size_t i = before; i < operations.size(); ++i) {
        const vgpu::Operation& operation = operations[i];
        if (std::string_view(operation.name).starts_with("plumb_decoder_")) {
            first = seen.kernels == 0 ? operation.start_ns : std::min(first, operation.start_ns);
            last = std::max(last, operation.end_ns);
            seen.kernels_ns += static_cast<std::uint64_t>(operation.end_ns - operation.start_ns);
            ++seen.kernels;
        }
    }
    seen.stretch_ns = static_cast<std::uint64_t>(last - first);
    seen_steps().push_back(seen);
    return token;
}

class StampedDecoder : public testing::TestWithParam<Graphs> {
  protected:
    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
        cuda::VirtualDecoderKernels::of_process();
        seen_steps().clear();
    }
    void TearDown() override {
        EXPECT_EQ(cuda::VirtualDecoderKernels::of_process().failure(), "");
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    }
    static Result<std::unique_ptr<ComputeBackend>> without_library(const std::string&, const cpu::CpuOptions&,
                                                                   Graphs graphs) {
        return cuda::make_backend(0, graphs, "no PTX", cuda::no_library);
    }
    static Result<std::unique_ptr<ComputeBackend>> with_library(const std::string&, const cpu::CpuOptions&,
                                                                Graphs graphs) {
        return cuda::make_backend(0, graphs, "no PTX");
    }
    Decoder load(bool stamps, BackendFunction device = without_library) {
        Options options;
        options.backend = "cuda";
        options.device = device;
        options.graphs = GetParam();
        options.kernel_stamps = stamps;
        options.step = seen_step;
        options.context = 64;
        options.chunk = 16;
        Result<Decoder> decoder = Decoder::load(make_test_model(folder_, "test", Type::f32), options);
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        return std::move(*decoder);
    }

    TestFolder folder_;
    OffRecorder off_;
};

TEST_P(StampedDecoder, tells_what_the_ledger_tells_within_a_tick_and_computes_the_same) {
    Decoder decoder = load(true);
    ASSERT_TRUE(decoder.prefill(decoder.random_prompt(20, 2), off_).ok());
    ASSERT_TRUE(decoder.decode(5, off_).ok());
    const std::uint64_t tick = vgpu::config().globaltimer_tick_ns;
    ASSERT_EQ(seen_steps().size(), 7U);
    for (const SeenStep& seen : seen_steps()) {
        ASSERT_TRUE(seen.stamped);
        ASSERT_GT(seen.kernels, 20U);
        EXPECT_NEAR(static_cast<double>(seen.stamped->stretch_ns), static_cast<double>(seen.stretch_ns),
                    static_cast<double>(tick));
        EXPECT_NEAR(static_cast<double>(seen.stamped->kernels_ns), static_cast<double>(seen.kernels_ns),
                    static_cast<double>(tick * seen.kernels));
        EXPECT_LT(seen.stamped->kernels_ns, seen.stamped->stretch_ns);
    }
    const std::vector<std::int32_t> tokens = decoder.tokens();
    Decoder plain = load(false);
    ASSERT_TRUE(plain.prefill(plain.random_prompt(20, 2), off_).ok());
    ASSERT_TRUE(plain.decode(5, off_).ok());
    EXPECT_EQ(plain.tokens(), tokens);
    EXPECT_FALSE(seen_steps().back().stamped);
}

TEST_P(StampedDecoder, has_no_times_of_steps_in_which_a_library_multiplies) {
    Decoder decoder = load(true, with_library);
    ASSERT_TRUE(decoder.prefill(decoder.random_prompt(16, 2), off_).ok());
    ASSERT_TRUE(decoder.decode(2, off_).ok());
    ASSERT_EQ(seen_steps().size(), 3U);
    EXPECT_FALSE(seen_steps()[0].stamped);
    EXPECT_TRUE(seen_steps()[1].stamped);
    EXPECT_TRUE(seen_steps()[2].stamped);
}

INSTANTIATE_TEST_SUITE_P(Graphs, StampedDecoder, testing::Values(Graphs::off, Graphs::on), [](const auto& parameter) {
    return std::string(parameter.param == Graphs::on ? "on" : "off");
});

TEST(KernelStamps, are_refused_where_there_are_none_or_kernels_run_twice) {
    const TestFolder folder;
    const std::string path = make_test_model(folder, "test", Type::f32);
    Options options;
    options.threads = test_threads();
    options.kernel_stamps = true;
    const auto said = [&] {
        const Result<Decoder> decoder = Decoder::load(path, options);
        return decoder.ok() ? std::string() : decoder.error().message;
    };
    EXPECT_EQ(said(), "only the cuda backend has kernels that stamp their times: leave --kernel-stamps out, or say "
                      "--backend cuda");
    options.graphs = Graphs::verify;
    EXPECT_EQ(said(), "--kernel-stamps cannot go with --graphs verify, which runs every kernel twice; say --graphs on "
                      "or off");
}

} // namespace
} // namespace plumb::decoder
