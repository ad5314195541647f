// SPDX-License-Identifier: Apache-2.0
// Every family decoded in steps of a millisecond and more: bricks cover what the thread did, and mixtures account for
// each of their parts. A share within one recording, never a time.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <unistd.h>

#include "decoder/decoder.hpp"
#include "decoder/model_maker/maker.hpp"
#include "decoder/model_maker/shapes.hpp"
#include "plumb/plumb.hpp"

namespace plumb::decoder {
namespace {

constexpr std::size_t chunk = 64;
constexpr std::size_t chunks = 4;
constexpr std::size_t decoded_steps = 50;

/// A neighbour that takes the memory and the CPU makes the few instructions between bricks dearer, and never the bricks
/// wider than they are: the best of some runs says most of the decoder.
constexpr int runs = 6;
constexpr double wanted_coverage = 0.99;

class FamilyCoverage : public testing::TestWithParam<const char*> {
  protected:
    FamilyCoverage()
        : folder_(std::filesystem::temp_directory_path() / ("plumb-coverage-" + std::to_string(getpid()))),
          model_((folder_ / "m.gguf").string()) {
        std::filesystem::create_directories(folder_);
        MakeOptions make;
        make.type = Type::f32; // the longest steps of the same operations
        Shape shape = *find_shape(GetParam());
        shape.vocabulary =
            49152; // steps as long as those of real models, or the instructions between bricks weigh too much
        const Status made = make_model(shape, model_, make);
        EXPECT_TRUE(made.ok()) << made.error().message;
    }
    FamilyCoverage(const FamilyCoverage&) = delete;
    FamilyCoverage& operator=(const FamilyCoverage&) = delete;
    ~FamilyCoverage() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    Report run() {
        Options options;
        options.threads = 1; // time off the CPU is then the machine's, not a barrier's
        options.context = 512;
        options.chunk = chunk;
        Result<Decoder> decoder = Decoder::load(model_, options);
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        layers_ = decoder->config().layers;
        Profiler off{Config{}};
        EXPECT_TRUE(decoder->prefill(decoder->random_prompt(chunk, 2), off).ok());
        EXPECT_TRUE(decoder->decode(4, off).ok()); // warm: pages of weights and scratch are there
        decoder->reset();
        Config config;
        config.on = true;
        config.out = "none";
        config.warmup_steps = 0;
        Profiler profiler(config);
        EXPECT_TRUE(decoder->prefill(decoder->random_prompt(chunks * chunk, 1), profiler).ok());
        EXPECT_TRUE(decoder->decode(decoded_steps, profiler).ok());
        Result<Report> report = profiler.snapshot();
        EXPECT_TRUE(report.ok()) << report.error().message;
        return std::move(*report);
    }

    std::filesystem::path folder_;
    std::string model_;
    std::size_t layers_ = 0;
};

double coverage(const Report& report, Phase phase) {
    for (const PhaseSummary& summary : report.phases) {
        if (summary.phase == phase && summary.wall.coverage.value) {
            return *summary.wall.coverage.value;
        }
    }
    return 0;
}

TEST_P(FamilyCoverage, F5_bricks_cover_the_prefill_and_the_decode) {
    std::map<Phase, double> best;
    const auto covered = [&] {
        return std::all_of(best.begin(), best.end(), [](const auto& found) { return found.second >= wanted_coverage; });
    };
    for (int i = 0; i < runs && (i == 0 || !covered()); ++i) {
        const Report report = run();
        for (const Phase phase : {Phase::prefill, Phase::decode}) {
            best[phase] = std::max(best[phase], coverage(report, phase));
        }
    }
    for (const auto& [phase, share] : best) {
        RecordProperty(phase_word(phase), std::to_string(share));
        EXPECT_GE(share, wanted_coverage) << phase_word(phase);
    }
}

class MixtureCoverage : public FamilyCoverage {};

TEST_P(MixtureCoverage, F6_parts_of_a_mixture_have_rows_of_one_call_per_layer_and_step) {
    const Report report = run();
    std::map<std::pair<std::string, Phase>, std::uint64_t> calls;
    for (const Row& row : report.bricks) {
        calls[{row.key.name, row.key.phase}] += row.time.count;
    }
    for (const char* part : {"moe_router", "moe_dispatch", "moe_experts", "moe_combine"}) {
        EXPECT_EQ((calls[{part, Phase::decode}]), layers_ * decoded_steps) << part;
        EXPECT_EQ((calls[{part, Phase::prefill}]), layers_ * chunks) << part;
    }
    EXPECT_EQ((calls[{"gate_projection", Phase::decode}]), 0U);
}

std::string test_name(const testing::TestParamInfo<const char*>& family) {
    std::string name = family.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyCoverage,
                         testing::Values("small-llama", "small-mistral", "small-mixtral", "small-qwen2", "small-qwen3",
                                         "small-qwen3moe", "small-gemma"),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Families, MixtureCoverage, testing::Values("small-mixtral", "small-qwen3moe"), test_name);

} // namespace
} // namespace plumb::decoder
