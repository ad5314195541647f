// SPDX-License-Identifier: Apache-2.0
// The critical path of steps of a real decode on one thread, against the step itself and an outside stopwatch: two figures of the
// same run each time, never times.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "answers/path/path.hpp"
#include "decoder/decoder.hpp"
#include "decoder/model_maker/maker.hpp"
#include "decoder/model_maker/shapes.hpp"
#include "plumb/plumb.hpp"

namespace plumb::decoder {
namespace {

constexpr std::uint64_t before = 9; // steps: the prefill, and decodes in which caches and buffers become warm
constexpr std::uint64_t timed_steps = 40;

double stopwatch_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

class PathLength : public testing::Test {
  protected:
    PathLength() : folder_(std::filesystem::temp_directory_path() / ("plumb-path-" + std::to_string(getpid()))) {
        std::filesystem::create_directories(folder_);
    }
    ~PathLength() override { std::filesystem::remove_all(folder_); }

    /// Decodes, and keeps what the stopwatch read around each step.
    void decode(const std::string& out) {
        MakeOptions make;
        make.type = Type::f32;
        make.seed = 1;
        Shape shape = *find_shape("tiny-llama");
        shape.vocabulary = 96000; // a step of some ms: beside it, what the stopwatch itself takes is nothing
        const std::string model = (folder_ / "m.gguf").string();
        ASSERT_TRUE(make_model(shape, model, make).ok());
        Options options;
        options.threads = 1;
        options.context = 512;
        Result<Decoder> decoder = Decoder::load(model, options);
        ASSERT_TRUE(decoder.ok());
        layers_ = decoder->config().layers;
        Config config;
        config.on = true;
        config.out = out;
        config.warmup_steps = 0;
        Profiler profiler(config);
        ASSERT_TRUE(decoder->prefill(decoder->random_prompt(32, 1), profiler).ok());
        ASSERT_TRUE(decoder->decode(before - 1, profiler).ok());
        for (std::uint64_t i = 0; i < timed_steps; ++i) {
            const double begin = stopwatch_ns();
            ASSERT_TRUE(decoder->decode(1, profiler).ok());
            stopwatch_ns_.push_back(stopwatch_ns() - begin);
        }
    }

    std::filesystem::path folder_;
    std::size_t layers_ = 0;
    std::vector<double> stopwatch_ns_;
};

TEST_F(PathLength, T10_the_path_of_a_decode_step_on_one_track_is_as_long_as_the_step_within_1_percent) {
    const std::string run = (folder_ / "run.plumb").string();
    ASSERT_NO_FATAL_FAILURE(decode(run));
    std::vector<double> of_stopwatch;
    for (std::uint64_t i = 0; i < timed_steps; ++i) {
        PathOptions options;
        options.step = before + i;
        const Result<PathReport> path = path_recording(run, options);
        ASSERT_TRUE(path.ok()) << path.error().message;
        ASSERT_EQ(path->phase, Phase::decode);
        ASSERT_EQ(path->tracks.size(), 1u);
        const auto length = static_cast<double>(path->analysis.length_ns);
        EXPECT_NEAR(length / path->host_ns, 1.0, 0.01) << "step " << *options.step;
        EXPECT_NEAR(length / path->span_ns, 1.0, 0.01) << "step " << *options.step;
        of_stopwatch.push_back(length / stopwatch_ns_[i]);
        std::size_t bricks = 0;
        for (const NodeId id : path->analysis.path) {
            bricks += path->graph[id].kind == NodeKind::brick ? 1 : 0;
        }
        EXPECT_GT(bricks, 8 * layers_) << "the path is made of bricks, not of one lump";
    }
    // Of single steps the thread may have lost the CPU between the step and the stopwatch.
    const auto middle = of_stopwatch.begin() + static_cast<std::ptrdiff_t>(of_stopwatch.size() / 2);
    std::nth_element(of_stopwatch.begin(), middle, of_stopwatch.end());
    EXPECT_NEAR(*middle, 1.0, 0.01);
}

} // namespace
} // namespace plumb::decoder
