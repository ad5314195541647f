// SPDX-License-Identifier: Apache-2.0
#include "numerics/decoded_run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "decoder/kernels/cpu/cpu_backend.hpp"
#include "decoder/model/step.hpp"
#include "decoder/model/weights.hpp"
#include "decoder/sampling/random.hpp"
#include "plumb/plumb.hpp"

namespace plumb::numerics_test {
namespace {

using namespace decoder;

constexpr std::size_t context = 128;

std::string model(const Folder& folder, const RunOptions& options) {
    const std::string path = folder.file(options.shape + (options.type == Type::bf16 ? "-bf16" : "-f32") + ".gguf");
    if (!std::filesystem::exists(path)) {
        MakeOptions make;
        make.type = options.type;
        make.seed = 11;
        const Status made = make_model(*find_shape(options.shape), path, make);
        EXPECT_TRUE(made.ok()) << made.error().message;
    }
    return path;
}

Config config_of(const RunOptions& options, DecodedRun& run) {
    Config config = *Config::parse("on,warmup=0,out=" + run.path + ",tensors=" + options.check);
    config.diagnostic = [](const char* sentence, void* user) {
        static_cast<std::vector<std::string>*>(user)->emplace_back(sentence);
    };
    config.diagnostic_user = &run.said;
    return config;
}

/// What a decoder does with a prompt, step by step: the loop of decoder.cpp, with a backend of the test's choice.
void decode(State& state, Sampler& sampler, const RunOptions& options, Profiler& profiler,
            std::vector<std::int32_t>& tokens) {
    const std::uint64_t key = stream_key(3, "prompt");
    std::vector<std::int32_t> prompt(options.prompt);
    for (std::size_t i = 0; i < prompt.size(); ++i) {
        prompt[i] = static_cast<std::int32_t>(random_bits(key, i) % state.weights.vocabulary());
    }
    for (const StepShape& step : steps_of(options)) {
        const bool prefill = step.first < prompt.size();
        ASSERT_TRUE(state.prepare(step.rows).ok());
        StepInput input;
        input.tokens = prefill ? std::span<const std::int32_t>(prompt).subspan(step.first, step.rows)
                               : std::span<const std::int32_t>(&tokens.back(), 1);
        input.phase = prefill ? Phase::prefill : Phase::decode;
        input.sampler = step.first + step.rows >= prompt.size() ? &sampler : nullptr;
        const std::int32_t token = run_step(state, input, profiler);
        if (input.sampler != nullptr) {
            tokens.push_back(token);
        }
    }
}

} // namespace

std::vector<StepShape> steps_of(const RunOptions& options) {
    std::vector<StepShape> steps;
    for (std::size_t at = 0; at < options.prompt; at += options.chunk) {
        steps.push_back({at, std::min(options.chunk, options.prompt - at)});
    }
    for (std::size_t i = 0; i < options.steps; ++i) {
        steps.push_back({options.prompt + i, 1});
    }
    return steps;
}

DecodedRun run(const Folder& folder, const std::string& name, const RunOptions& options) {
    DecodedRun run;
    run.path = folder.file(name + ".plumb");
    std::filesystem::remove(run.path);
    Result<gguf::File> file = gguf::File::open(model(folder, options));
    EXPECT_TRUE(file.ok());
    Result<ModelConfig> shape = read_config(*file);
    Result<Weights> weights = read_weights(*file, *shape);
    Result<Sampler> sampler = Sampler::make({}, weights->vocabulary());
    Result<std::unique_ptr<ComputeBackend>> inner = cpu::make_backend({options.threads, false});
    EXPECT_TRUE(shape.ok() && weights.ok() && sampler.ok() && inner.ok());
    FaultyBackend backend(**inner, shape->layers, options.fault);
    backend.enter();
    Result<State> state = make_state(std::move(*shape), std::move(*weights), backend, context, options.chunk);
    EXPECT_TRUE(state.ok());
    {
        Profiler profiler(config_of(options, run));
        EXPECT_TRUE(profiler.status().ok()) << profiler.status().error().message;
        decode(*state, *sampler, options, profiler, run.tokens);
        EXPECT_TRUE(profiler.close().ok());
    }
    backend.leave();
    run.planted = backend.planted();
    run.bad_index = backend.bad_index();
    return run;
}

std::string render_text(const DivergeReport& report) { return page::text_of(page_of(report, {}), false); }

} // namespace plumb::numerics_test
