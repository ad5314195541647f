// SPDX-License-Identifier: Apache-2.0
// The decoder under the profiler: the same tokens with profiling on, off and compiled out; every operation a brick.
#include <algorithm>
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

    TestFolder folder_;
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
    for (const Row& row : report.bricks) {
        if (row.key.phase == phase) {
            out[row.key.name] = row.calls_per_step;
        }
    }
    return out;
}

/// What a step of a model with these layers calls, in each phase.
std::map<std::string, double> expected_calls(const Decoder& decoder) {
    const double layers = static_cast<double>(decoder.config().layers);
    std::map<std::string, double> out{
        {"embedding", 1}, {"lm_head", 1}, {"sampling", 1}, {"rms_norm", 2 * layers + 1}, {"residual_add", 2 * layers}};
    for (const char* brick : {"qkv_projection", "rope_embedding", "kv_append", "attention", "output_projection"}) {
        out[brick] = layers;
    }
    if (decoder.config().qk_norm) {
        out["qk_norm"] = layers;
    }
    if (decoder.config().experts.count != 0) {
        for (const char* brick : {"moe_router", "moe_dispatch", "moe_experts", "moe_combine"}) {
            out[brick] = layers;
        }
    } else {
        for (const char* brick : {"gate_projection", "up_projection", "activation", "down_projection"}) {
            out[brick] = layers;
        }
    }
    return out;
}

class ProfiledFamily : public ProfiledDecoder, public testing::WithParamInterface<const char*> {};

TEST_P(ProfiledFamily, F6_every_operation_is_a_brick_with_its_calls_per_step) {
    Decoder decoder = load(GetParam(), 0, run_step);
    Profiler profiler(on());
    run(decoder, profiler);
    const Result<Report> report = profiler.snapshot();
    ASSERT_TRUE(report.ok()) << report.error().message;
    std::map<std::string, double> expected = expected_calls(decoder);
    EXPECT_EQ(calls(*report, Phase::decode), expected);
    // Only the last of the prompt's three chunks samples.
    expected["sampling"] = 1.0 / 3.0;
    EXPECT_EQ(calls(*report, Phase::prefill), expected);
    for (const PhaseSummary& phase : report->phases) {
        EXPECT_EQ(phase.decode_tokens, phase.phase == Phase::decode ? decode_steps : 0U);
        EXPECT_EQ(phase.prefill_tokens, phase.phase == Phase::prefill ? prompt_tokens : 0U);
    }
}

TEST_P(ProfiledFamily, tokens_are_the_same_with_profiling_on_off_and_compiled_out) {
    const auto with = tokens(GetParam(), 1.0F, run_step, on());
    EXPECT_EQ(with.size(), decode_steps + 1);
    EXPECT_EQ(with, tokens(GetParam(), 1.0F, run_step, plumb::Config{}));
    EXPECT_EQ(with, tokens(GetParam(), 1.0F, run_step_compiled_out, on()));
}

INSTANTIATE_TEST_SUITE_P(Families, ProfiledFamily,
                         testing::Values("test-qwen2", "test-llama3", "test-mistral", "test-mixtral", "test-yarn",
                                         "test-qwen3", "test-qwen3moe", "test-gemma"),
                         [](const auto& family) {
                             std::string name = family.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

TEST_F(ProfiledDecoder, T14_experts_carry_the_bytes_of_those_that_a_step_uses) {
    Decoder decoder = load("test-qwen3moe", 0, run_step);
    Profiler profiler(on());
    run(decoder, profiler);
    const Result<Report> report = profiler.snapshot();
    ASSERT_TRUE(report.ok()) << report.error().message;
    const ModelConfig& config = decoder.config();
    const double width = static_cast<double>(config.experts.feed_forward);
    const double hidden = static_cast<double>(config.hidden);
    const double used = static_cast<double>(config.experts.used);
    bool found = false;
    for (const Row& row : report->bricks) {
        if (row.key.phase != Phase::decode || row.key.name != "moe_experts") {
            continue;
        }
        found = true;
        const double weights = used * 3 * width * hidden * 2;
        const double values = used * (3 * hidden + 5 * width) * 4;
        EXPECT_EQ(row.bytes_per_call.value, weights + values);
        EXPECT_EQ(row.flops_per_call.value, used * width * (6 * hidden + 5));
    }
    EXPECT_TRUE(found);
}

TEST_F(ProfiledDecoder, T3_a_batch_is_one_step_of_as_many_tokens_as_sequences) {
    Options options;
    options.threads = test_threads();
    options.context = 128;
    options.chunk = 16;
    options.batch = 3;
    Result<Decoder> decoder = Decoder::load(make_test_model(folder_, "test-qwen3", Type::q8_0), options);
    ASSERT_TRUE(decoder.ok()) << decoder.error().message;
    Profiler profiler(on());
    for (std::size_t i = 0; i < options.batch; ++i) {
        ASSERT_TRUE(decoder->prefill(decoder->random_prompt(5 + i, i), profiler, {}, i).ok());
    }
    ASSERT_TRUE(decoder->decode(decode_steps, profiler).ok());
    const Result<Report> report = profiler.snapshot();
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(calls(*report, Phase::decode), expected_calls(*decoder));
    for (const PhaseSummary& phase : report->phases) {
        if (phase.phase != Phase::decode) {
            continue;
        }
        EXPECT_EQ(phase.decode_tokens, decode_steps * options.batch);
    }
    const double seen = static_cast<double>(5 + 6 + 7) + 3 * (decode_steps + 1) / 2.0; // on average, all together
    const double kv_row = 2.0 * static_cast<double>(decoder->config().kv_size()) * 4;
    const double rows = 3 * 2.0 * static_cast<double>(decoder->config().query_size()) * 4;
    for (const Row& row : report->bricks) {
        if (row.key.phase == Phase::decode && row.key.name == "attention") {
            EXPECT_NEAR(*row.bytes_per_call.value, rows + kv_row * seen, 1e-6 * kv_row);
        }
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
        if (row.key.phase != Phase::decode) {
            continue;
        }
        EXPECT_TRUE(row.bytes_per_call.value) << row.key.name;
        if (row.key.name == "lm_head") {
            EXPECT_EQ(row.flops_per_call.value, 2 * hidden * vocabulary);
            EXPECT_EQ(row.bytes_per_call.value, 2 * hidden * vocabulary + input * hidden + 4 * vocabulary);
        }
    }
}

} // namespace
} // namespace plumb::decoder
