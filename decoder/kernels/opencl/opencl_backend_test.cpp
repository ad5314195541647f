// SPDX-License-Identifier: Apache-2.0
// The decoder on a real OpenCL device (PoCL on the machines where these tests run) against the same decoder on the CPU, and
// its bricks against every command that the device ran.
#include <algorithm>
#include <array>
#include <cmath>

#include "decoder/kernels/choose.hpp"
#include "decoder/test_support.hpp"
#include "plumb/plumb.hpp"

namespace plumb::decoder {
namespace {

class OpenClDecoder : public testing::Test {
  protected:
    void SetUp() override {
        if (test_threads() == 1) {
            GTEST_SKIP() << "the thread sanitizer does not see what the driver synchronises";
        }
        keep_pocl_to_this_process();
        const auto opened = make_backend("opencl", {});
        if (!opened && opened.error().code == ErrorCode::unavailable) {
            GTEST_SKIP() << opened.error().message;
        }
        ASSERT_TRUE(opened.ok()) << opened.error().message;
    }

    Decoder load(const std::string& path, const std::string& backend, std::size_t chunk = 16) {
        Options options;
        options.backend = backend;
        options.threads = test_threads();
        options.context = 128;
        options.chunk = chunk;
        options.widen_bf16 = true; // the OpenCL kernels compute in f32, too
        Result<Decoder> decoder = Decoder::load(path, options);
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        return std::move(*decoder);
    }

    static void run(Decoder& decoder, Recorder& profiler, std::size_t steps) {
        ASSERT_TRUE(decoder.prefill(decoder.random_prompt(37, 2), profiler).ok());
        ASSERT_TRUE(decoder.decode(steps, profiler).ok());
    }

    TestFolder folder_;
    OffRecorder off_;
};

/// Largest difference of logits after a prompt, in parts of the largest logit.
double largest_difference(Decoder& a, Decoder& b) {
    double difference = 0, largest = 0;
    const auto left = a.logits(), right = b.logits();
    EXPECT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
        EXPECT_FALSE(std::isnan(left[i]));
        difference = std::max(difference, static_cast<double>(std::abs(left[i] - right[i])));
        largest = std::max(largest, static_cast<double>(std::abs(right[i])));
    }
    EXPECT_GT(largest, 0.0);
    return difference / largest;
}

TEST_F(OpenClDecoder, logits_agree_with_the_cpu_for_every_shape_type_and_chunk) {
    for (const std::string_view shape : {"test", "test-qwen2"}) {
        for (const Type type : {Type::f32, Type::bf16}) {
            const std::string path = make_test_model(folder_, shape, type);
            Decoder cpu = load(path, "cpu");
            ASSERT_TRUE(cpu.prefill(cpu.random_prompt(37, 2), off_).ok());
            for (const std::size_t chunk : {1U, 16U, 64U}) {
                Decoder device = load(path, "opencl", chunk);
                ASSERT_TRUE(device.prefill(device.random_prompt(37, 2), off_).ok());
                EXPECT_LT(largest_difference(device, cpu), 2e-5) << shape << " chunk " << chunk;
            }
        }
    }
}

TEST_F(OpenClDecoder, the_largest_value_is_never_one_that_is_no_number) {
    const auto backend = std::move(*make_backend("opencl", {}));
    const auto memory = std::move(*backend->allocate(4 * sizeof(float)));
    auto* values = static_cast<float*>(memory.get());
    const float nan = std::nanf("");
    for (const std::array<float, 4>& row : {std::array{nan, 1.0F, 3.0F, 2.0F}, std::array{1.0F, nan, 3.0F, nan}}) {
        backend->write(values, row.data(), sizeof row);
        std::int32_t found = -1;
        backend->largest({values, Type::f32, 1, row.size()}, {&found, 1});
        EXPECT_EQ(found, 2);
    }
}

TEST_F(OpenClDecoder, greedy_tokens_of_f32_models_are_those_of_the_cpu) {
    for (const std::string_view shape : {"test", "test-qwen2"}) {
        const std::string path = make_test_model(folder_, shape, Type::f32);
        Decoder cpu = load(path, "cpu"), device = load(path, "opencl:0");
        run(cpu, off_, 80);
        run(device, off_, 80);
        EXPECT_EQ(device.tokens(), cpu.tokens());
    }
}

TEST_F(OpenClDecoder, sampled_tokens_come_from_the_same_logits) {
    const std::string path = make_test_model(folder_, "test", Type::f32);
    std::vector<std::int32_t> first;
    for (const char* backend : {"cpu", "opencl"}) {
        Options options;
        options.backend = backend;
        options.threads = test_threads();
        options.context = 128;
        options.sampling.temperature = 0.8F;
        Result<Decoder> decoder = Decoder::load(path, options);
        ASSERT_TRUE(decoder.ok()) << decoder.error().message;
        run(*decoder, off_, 40);
        first = first.empty() ? decoder->tokens() : first;
        EXPECT_EQ(decoder->tokens(), first);
    }
}

TEST_F(OpenClDecoder, tokens_are_the_same_with_profiling_on_off_and_compiled_out) {
    const std::string path = make_test_model(folder_, "test", Type::f32);
    std::vector<std::int32_t> first;
    for (const StepFunction step : {run_step, run_step_compiled_out}) {
        for (const bool profiled : {false, true}) {
            Options options;
            options.backend = "opencl";
            options.context = 128;
            options.step = step;
            Result<Decoder> decoder = Decoder::load(path, options);
            ASSERT_TRUE(decoder.ok()) << decoder.error().message;
            plumb::Config config;
            config.on = profiled;
            config.out = "none";
            config.device_every = 1;
            Profiler profiler(config);
            run(*decoder, profiler, 30);
            first = first.empty() ? decoder->tokens() : first;
            EXPECT_EQ(decoder->tokens(), first);
        }
    }
}

TEST_F(OpenClDecoder, every_brick_is_timed_on_the_device) {
    Decoder decoder = load(make_test_model(folder_, "test-qwen2", Type::f32), "opencl");
    plumb::Config config;
    config.on = true;
    config.out = "none";
    config.device_every = 1;
    config.warmup_steps = 0;
    Profiler profiler(config);
    run(decoder, profiler, 30);
    ASSERT_TRUE(profiler.flush(30).ok());
    const Result<Report> report = profiler.snapshot();
    ASSERT_TRUE(report.ok()) << report.error().message;
    std::size_t rows = 0;
    for (const Row& row : report->bricks) {
        if (row.key.phase != Phase::decode) {
            continue;
        }
        EXPECT_EQ(row.source, "opencl_event") << row.key.name;
        ++rows;
    }
    EXPECT_EQ(rows, 14U) << "fourteen bricks make a step of a dense model";
}

TEST_F(OpenClDecoder, a_device_that_is_not_there_and_a_word_that_is_none_are_refused) {
    const std::string path = make_test_model(folder_, "test", Type::f32);
    Options options;
    for (const char* word : {"opencl:99", "opencl:", "opencl:x", "opencl1", "metal", ""}) {
        options.backend = word;
        const Result<Decoder> decoder = Decoder::load(path, options);
        ASSERT_FALSE(decoder.ok()) << word;
        EXPECT_NE(decoder.error().message.find(';'), std::string::npos) << decoder.error().message;
    }
}

} // namespace
} // namespace plumb::decoder
