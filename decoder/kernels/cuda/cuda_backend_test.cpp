// SPDX-License-Identifier: Apache-2.0
// The decoder on the virtual GPU, its kernels in their host form, against the same decoder on the CPU.
#include "decoder/kernels/cuda/cuda_backend.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "decoder/kernels/choose.hpp"
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"
#include "decoder/test_support.hpp"
#include "plumb/plumb.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder {
namespace {

/// Beside the same values in f32 on the CPU: only the order of sums differs.
constexpr double tolerance = 2e-5;

/// Any image will do for the virtual GPU, so that these tests need no nvcc.
Result<std::unique_ptr<ComputeBackend>> virtual_backend(const std::string& word, const cpu::CpuOptions& cpu,
                                                        Graphs graphs) {
    return word == "cuda" ? cuda::make_backend(0, graphs, "no PTX") : make_backend(word, cpu, graphs);
}

class CudaDecoder : public testing::Test {
  protected:
    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
        kernels();
    }
    void TearDown() override {
        EXPECT_EQ(kernels().failure(), "");
        EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
    }
    static cuda::VirtualDecoderKernels& kernels() { return cuda::VirtualDecoderKernels::of_process(); }

    static Options options(const std::string& backend, Graphs graphs = Graphs::off, std::size_t batch = 1) {
        Options out;
        out.backend = backend;
        out.device = virtual_backend;
        out.graphs = graphs;
        out.threads = test_threads();
        out.context = 300;
        out.chunk = 16;
        out.batch = batch;
        out.widen_bf16 = true; // the CUDA kernels compute in f32, too
        return out;
    }
    static Decoder load(const std::string& path, const Options& options) {
        Result<Decoder> decoder = Decoder::load(path, options);
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        return std::move(*decoder);
    }

    TestFolder folder_;
    OffRecorder off_;
};

/// Largest difference of logits, in parts of the largest logit.
double difference_of(std::span<const float> a, std::span<const float> b) {
    double difference = 0, largest = 0;
    EXPECT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_FALSE(std::isnan(a[i]));
        difference = std::max(difference, static_cast<double>(std::abs(a[i] - b[i])));
        largest = std::max(largest, static_cast<double>(std::abs(b[i])));
    }
    EXPECT_GT(largest, 0.0);
    return difference / largest;
}

/// The two best logits are further apart than what rounding can move.
bool is_clear(std::span<const float> logits) {
    float best = -INFINITY, second = -INFINITY, largest = 0;
    for (const float logit : logits) {
        second = std::max(second, std::min(logit, best));
        best = std::max(best, logit);
        largest = std::max(largest, std::abs(logit));
    }
    return static_cast<double>(best - second) > 2 * tolerance * static_cast<double>(largest);
}

std::int32_t best_of(std::span<const float> logits) {
    return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

struct FamilyCase {
    const char* shape;
    Type type;
    std::optional<Type> second;
};

void PrintTo(const FamilyCase& one, std::ostream* out) {
    *out << one.shape << "-" << layout_of(one.type).word << (one.second ? layout_of(*one.second).word : "");
}

class CudaLogits : public CudaDecoder, public testing::WithParamInterface<FamilyCase> {
  protected:
    std::string model() { return make_test_model(folder_, GetParam().shape, GetParam().type, GetParam().second); }
    /// A prompt, in chunks of many and of few rows, then tokens one by one; the logits after each.
    std::vector<std::vector<float>> teach(Decoder& decoder) {
        std::vector<std::vector<float>> out;
        const auto keep = [&] {
            out.emplace_back(decoder.logits().begin(), decoder.logits().end());
        };
        Status status = decoder.prefill(decoder.random_prompt(18, 2), off_);
        keep();
        for (const std::int32_t token : decoder.random_prompt(3, 5)) {
            status = status ? decoder.prefill({&token, 1}, off_) : status;
            keep();
        }
        EXPECT_TRUE(status.ok()) << status.error().message;
        return out;
    }
};

TEST_P(CudaLogits, of_given_tokens_are_those_of_the_cpu_launched_and_replayed) {
    const std::string path = model();
    Decoder cpu = load(path, options("cpu")), eager = load(path, options("cuda"));
    Decoder graphs = load(path, options("cuda", Graphs::on));
    const auto wanted = teach(cpu), launched = teach(eager), replayed = teach(graphs);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_LT(difference_of(launched[i], wanted[i]), tolerance) << i;
        EXPECT_EQ(replayed[i], launched[i]) << i;
    }
}

TEST_P(CudaLogits, of_a_batch_are_those_of_each_sequence_alone_and_clear_choices_are_the_same) {
    constexpr std::size_t batch = 4, steps = 2;
    const std::string path = model();
    Decoder together = load(path, options("cuda", Graphs::verify, batch)), alone = load(path, options("cpu"));
    std::vector<std::vector<std::int32_t>> prompts;
    for (std::size_t i = 0; i < batch; ++i) {
        prompts.push_back(together.random_prompt(1 + 2 * i, 20 + i));
        ASSERT_TRUE(together.prefill(prompts[i], off_, {}, i).ok());
    }
    const Result<std::size_t> done = together.decode(steps, off_);
    ASSERT_TRUE(done.ok()) << done.error().message;
    for (std::size_t i = 0; i < batch; ++i) {
        alone.reset();
        ASSERT_TRUE(alone.prefill(prompts[i], off_).ok());
        for (const std::int32_t token : together.tokens(i)) {
            const auto logits = alone.logits();
            EXPECT_TRUE(!is_clear(logits) || best_of(logits) == token) << "sequence " << i;
            if (alone.position() == together.position(i)) {
                break; // the last one was chosen, and not fed
            }
            ASSERT_TRUE(alone.prefill({&token, 1}, off_).ok());
        }
        EXPECT_LT(difference_of(together.logits(i), alone.logits()), tolerance) << "sequence " << i;
    }
}

/// Attention is cut into more stretches as the cache fills: a graph for each number of them.
TEST_F(CudaDecoder, a_long_sequence_is_replayed_with_as_many_stretches_as_it_is_worth) {
    const std::string path = make_test_model(folder_, "test", Type::f32);
    Decoder device = load(path, options("cuda", Graphs::verify)), cpu = load(path, options("cpu"));
    for (Decoder* decoder : {&device, &cpu}) {
        ASSERT_TRUE(decoder->prefill(decoder->random_prompt(250, 3), off_).ok());
        const Result<std::size_t> done = decoder->decode(10, off_);
        ASSERT_TRUE(done.ok()) << done.error().message;
    }
    EXPECT_EQ(device.tokens(), cpu.tokens());
    EXPECT_LT(difference_of(device.logits(), cpu.logits()), tolerance);
    EXPECT_EQ(vgpu::alive().execs, 2U);
}

TEST_F(CudaDecoder, sampled_tokens_come_from_the_same_logits) {
    const std::string path = make_test_model(folder_, "test", Type::f32);
    std::vector<std::int32_t> first;
    for (const char* backend : {"cpu", "cuda"}) {
        Options wanted = options(backend);
        wanted.sampling.temperature = 0.8F;
        Decoder decoder = load(path, wanted);
        ASSERT_TRUE(decoder.prefill(decoder.random_prompt(20, 2), off_).ok());
        ASSERT_TRUE(decoder.decode(10, off_).ok());
        first = first.empty() ? decoder.tokens() : first;
        EXPECT_EQ(decoder.tokens(), first);
    }
}

TEST_F(CudaDecoder, bricks_are_timed_on_the_device_launched_and_replayed) {
    const std::string path = make_test_model(folder_, "test", Type::f32);
    for (const Graphs graphs : {Graphs::off, Graphs::on}) {
        Decoder decoder = load(path, options("cuda", graphs));
        plumb::Config config;
        config.on = true;
        config.out = "none";
        config.device_every = 1;
        config.graph.every = 1;
        config.warmup_steps = 0;
        config.clock = &vgpu::host_clock();
        Profiler profiler(config);
        decoder.profile_replays(&profiler);
        ASSERT_TRUE(decoder.prefill(decoder.random_prompt(20, 2), profiler).ok());
        // Fourteen bricks make a step of a dense model; sampling is outside the graph. A thread of the profiler's makes what is
        // sampled of it: some steps later it is there.
        const std::string source = graphs == Graphs::on ? "cuda_graph" : "cuda_event";
        const std::size_t wanted = graphs == Graphs::on ? 13 : 14;
        std::set<std::string> timed;
        for (int rounds = 0; timed.size() != wanted && rounds < 25; ++rounds) {
            ASSERT_TRUE(decoder.decode(10, profiler).ok());
            vgpu::run_dry();
            EXPECT_TRUE(profiler.flush(30).ok());
            const Result<Report> report = profiler.snapshot();
            ASSERT_TRUE(report.ok()) << report.error().message;
            for (const Row& row : report->bricks) {
                if (row.key.phase == Phase::decode && row.source.starts_with(source)) {
                    timed.insert(row.key.name);
                }
            }
        }
        decoder.profile_replays(nullptr);
        EXPECT_EQ(timed.size(), wanted);
    }
}

TEST_F(CudaDecoder, what_it_cannot_do_is_one_sentence) {
    const auto said = [](const auto& made) {
        return made.ok() ? std::string() : made.error().message;
    };
    EXPECT_EQ(
        said(cuda::make_backend(0, Graphs::off, "")),
        "this program was built without nvcc, so its CUDA kernels are not in it; build it where nvcc is found, or "
        "use --backend cpu");
    EXPECT_EQ(said(cuda::make_backend(7, Graphs::off, "any")),
              "there is no CUDA device 7; use 0 to 0, as nvidia-smi -L lists them");
    EXPECT_EQ(said(make_backend("cpu", {}, Graphs::on)),
              "only the cuda backend has graphs: leave --graphs out, or say --backend cuda");
    vgpu::fail("cuMemAlloc", vgpu::CuResult::out_of_memory, 3);
    EXPECT_EQ(said(Decoder::load(make_test_model(folder_, "test", Type::f32), options("cuda"))),
              "the CUDA device has no 0 MiB (2); use a smaller model or --ctx, or --backend cpu");
}

std::vector<FamilyCase> family_cases() {
    std::vector<FamilyCase> out;
    for (const char* shape : {"test", "test-qwen2"}) {
        for (const Type type : {Type::f32, Type::bf16, Type::f16}) {
            out.push_back({shape, type, {}});
        }
    }
    for (const char* shape : {"test-llama3", "test-mistral", "test-mixtral", "test-linear", "test-yarn", "test-qwen3",
                              "test-qwen3moe", "test-gemma"}) {
        for (const Type type : all_types) {
            out.push_back({shape, type, {}});
        }
    }
    out.push_back({"test-qwen3", Type::q4_k, Type::q6_k});
    return out;
}

INSTANTIATE_TEST_SUITE_P(Families, CudaLogits, testing::ValuesIn(family_cases()), [](const auto& parameter) {
    std::string name = testing::PrintToString(parameter.param);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

} // namespace
} // namespace plumb::decoder
