// SPDX-License-Identifier: Apache-2.0
// The decoder under the profiler: the same tokens with profiling on, off and compiled out; every operation a brick.
#include <map>

#include "decoder/test_support.hpp"
#include "plumb/plumb.hpp"

namespace plumb::decoder {
namespace {

constexpr std::size_t prompt_tokens = 40; // chunks of 16, 16 and 8
constexpr std::size_t decode_steps = 24;

plumb::Config on() {
    plumb::Config config;
    config.on = true;
    config.out = "none";
    config.warmup_steps = 0;
    return config;
}

class ProfiledDecoder : public testing::Test {
  protected:
    Decoder load(std::string_view shape, float temperature, StepFunction step) {
        Options options;
        options.threads = test_threads();
        options.context = 128;
        options.chunk = 16;
        options.sampling.temperature = temperature;
        options.step = step;
        Result<Decoder> decoder = Decoder::load(make_test_model(folder_, shape, Type::bf16), options);
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        return std::move(*decoder);
    }

    static void run(Decoder& decoder, Recorder& profiler) {
        ASSERT_TRUE(decoder.prefill(decoder.random_prompt(prompt_tokens, 2), profiler).ok());
        ASSERT_TRUE(decoder.decode(decode_steps, profiler).ok());
    }

    /// The tokens of a fresh decoder, and what a live report says of them.
    std::vector<std::int32_t> tokens(std::string_view shape, float temperature, StepFunction step,
                                     plumb::Config config) {
        Decoder decoder = load(shape, temperature, step);
        Profiler profiler(config);
        EXPECT_TRUE(profiler.status().ok());
        EXPECT_EQ(profiler.enabled(), config.on);
        run(decoder, profiler);
        return decoder.tokens();
    }

    TemporaryFolder folder_;
};

TEST_F(ProfiledDecoder, tokens_are_the_same_with_profiling_on_off_and_compiled_out) {
    for (const std::string_view shape : {"test", "test-qwen2"}) {
        for (const float temperature : {0.0F, 1.0F}) {
            const auto with = tokens(shape, temperature, run_step, on());
            EXPECT_EQ(with.size(), decode_steps + 1);
            EXPECT_EQ(with, tokens(shape, temperature, run_step, plumb::Config{}));
            plumb::Config tiled = on();
            tiled.tiles = 4096;
            EXPECT_EQ(with, tokens(shape, temperature, run_step, tiled));
            EXPECT_EQ(with, tokens(shape, temperature, run_step_compiled_out, on()));
        }
    }
}

TEST_F(ProfiledDecoder, compiled_out_leaves_no_scope) {
    Decoder decoder = load("test", 0, run_step_compiled_out);
    Profiler profiler(on());
    run(decoder, profiler);
    const Result<Report> report = profiler.snapshot();
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->scopes, 0U);
}

/// Brick name to calls per step, of one phase.
std::map<std::string, double> calls(const Report& report, Phase phase) {
    std::map<std::string, double> out;
    for (const Row& row : report.bricks)
        if (row.key.phase == phase)
            out[row.key.name] = row.calls_per_step;
    return out;
}

TEST_F(ProfiledDecoder, every_operation_is_a_brick_with_its_calls_per_step) {
    Decoder decoder = load("test-qwen2", 0, run_step);
    Profiler profiler(on());
    run(decoder, profiler);
    const Result<Report> report = profiler.snapshot();
    ASSERT_TRUE(report.ok()) << report.error().message;
    const double layers = static_cast<double>(decoder.config().layers);
    std::map<std::string, double> expected{
        {"embedding", 1}, {"lm_head", 1}, {"sampling", 1}, {"rms_norm", 2 * layers + 1}, {"residual_add", 2 * layers}};
    for (const char* brick : {"qkv_projection", "rope_embedding", "kv_append", "attention", "output_projection",
                              "gate_projection", "up_projection", "activation", "down_projection"})
        expected[brick] = layers;
    EXPECT_EQ(calls(*report, Phase::decode), expected);
    // Only the last of the prompt's three chunks samples.
    expected["sampling"] = 1.0 / 3.0;
    EXPECT_EQ(calls(*report, Phase::prefill), expected);
    for (const PhaseSummary& phase : report->phases) {
        EXPECT_EQ(phase.decode_tokens, phase.phase == Phase::decode ? decode_steps : 0U);
        EXPECT_EQ(phase.prefill_tokens, phase.phase == Phase::prefill ? prompt_tokens : 0U);
    }
}

TEST_F(ProfiledDecoder, products_carry_their_bytes_and_flops) {
    Decoder decoder = load("test-qwen2", 0, run_step);
    Profiler profiler(on());
    run(decoder, profiler);
    const Result<Report> report = profiler.snapshot();
    ASSERT_TRUE(report.ok()) << report.error().message;
    const double hidden = static_cast<double>(decoder.config().hidden);
    const double vocabulary = static_cast<double>(decoder.vocabulary());
    const double input = decoder.backend().input_type(Type::bf16) == Type::bf16 ? 2 : 4;
    for (const Row& row : report->bricks) {
        if (row.key.phase != Phase::decode)
            continue;
        EXPECT_TRUE(row.bytes_per_call.value) << row.key.name;
        if (row.key.name == "lm_head") {
            EXPECT_EQ(row.flops_per_call.value, 2 * hidden * vocabulary);
            EXPECT_EQ(row.bytes_per_call.value, 2 * hidden * vocabulary + input * hidden + 4 * vocabulary);
        }
    }
}

} // namespace
} // namespace plumb::decoder
