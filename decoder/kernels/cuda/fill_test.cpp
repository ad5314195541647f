// SPDX-License-Identifier: Apache-2.0
// Weights that the device makes, on the virtual GPU: those of the file that `plumb model make` writes, without the file.
#include "decoder/kernels/cuda/fill.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <unistd.h>

#include "decoder/kernels/cuda/cuda_backend.hpp"
#include "decoder/kernels/cuda/virtual_kernels_testing.hpp"
#include "decoder/test_support.hpp"
#include "virtual_gpu/control.hpp"

namespace plumb::decoder {
namespace {

struct MadeCase {
    const char* shape;
    Type type;
    std::optional<Type> second;
};

void PrintTo(const MadeCase& one, std::ostream* out) {
    *out << one.shape << "-" << layout_of(one.type).word << (one.second ? layout_of(*one.second).word : "");
}

struct Told {
    std::vector<std::int32_t> tokens;
    std::vector<float> logits;
    friend bool operator==(const Told&, const Told&) = default;
};

class WeightsMadeOnDevice : public testing::TestWithParam<MadeCase> {
  protected:
    void SetUp() override {
        if (thread_sanitized) {
            GTEST_SKIP() << "the thread sanitizer does not know the stacks of the kernels' threads";
        }
        cuda::VirtualDecoderKernels::of_process();
        before_ = vgpu::config();
        vgpu::Config config = before_;
        config.copy_bytes_per_us = 1000; // a byte takes a nanosecond
        vgpu::configure(config);
    }
    void TearDown() override {
        if (!thread_sanitized) {
            vgpu::configure(before_);
            EXPECT_EQ(cuda::VirtualDecoderKernels::of_process().failure(), "");
            EXPECT_EQ(vgpu::errors(), std::vector<std::string>{});
        }
    }

    static Options on_device() {
        Options out;
        out.backend = "cuda";
        out.device = [](const std::string&, const cpu::CpuOptions&, Graphs graphs) {
            return cuda::make_backend(0, graphs, "no PTX");
        };
        out.context = 64;
        out.chunk = 16;
        return out;
    }
    static MakeOptions made(const MadeCase& one, std::uint64_t seed) {
        MakeOptions out;
        out.type = one.type;
        out.second = one.second;
        out.seed = seed;
        return out;
    }
    /// What the ledger says was copied to the device since it had `from` operations.
    static std::uint64_t copied_since(std::size_t from) {
        std::uint64_t bytes = 0;
        const std::vector<vgpu::Operation> operations = vgpu::operations();
        for (std::size_t i = from; i < operations.size(); ++i) {
            if (std::string_view(operations[i].name) == "copy_h2d") {
                bytes +=
                    static_cast<std::uint64_t>(operations[i].end_ns - operations[i].start_ns - vgpu::config().copy_ns);
            }
        }
        return bytes;
    }
    static Decoder load_unwritten(const MadeCase& one, std::uint64_t seed) {
        Result<UnwrittenModel> model = lay_out_model(*find_shape(one.shape), made(one, seed));
        EXPECT_TRUE(model.ok()) << model.error().message;
        Result<Decoder> decoder = Decoder::load(std::move(*model), on_device());
        EXPECT_TRUE(decoder.ok()) << decoder.error().message;
        return std::move(*decoder);
    }
    Told run(Decoder& decoder) {
        EXPECT_TRUE(decoder.prefill(decoder.random_prompt(18, 2), off_).ok());
        const Result<std::size_t> done = decoder.decode(6, off_);
        EXPECT_TRUE(done.ok()) << done.error().message;
        return {decoder.tokens(), {decoder.logits().begin(), decoder.logits().end()}};
    }

    TestFolder folder_;
    OffRecorder off_;
    vgpu::Config before_;
};

TEST_P(WeightsMadeOnDevice, are_those_of_the_file_to_the_bit_and_no_matrix_is_copied) {
    const MadeCase& one = GetParam();
    const std::string path = folder_.file("m.gguf");
    ASSERT_TRUE(make_model(*find_shape(one.shape), path, made(one, 7)).ok());
    std::size_t begin = vgpu::operation_count();
    Result<Decoder> from_file = Decoder::load(path, on_device());
    ASSERT_TRUE(from_file.ok()) << from_file.error().message;
    const std::uint64_t copied_of_file = copied_since(begin);
    begin = vgpu::operation_count();
    Decoder unwritten = load_unwritten(one, 7);
    const std::uint64_t copied = copied_since(begin);

    std::uint64_t matrices = 0;
    const Result<gguf::File> file = gguf::File::open(path);
    ASSERT_TRUE(file.ok());
    for (const gguf::TensorInfo& tensor : file->contents().tensors) {
        matrices += tensor.dimensions > 1 ? tensor.data.size() : 0;
    }
    EXPECT_EQ(copied_of_file, copied + matrices);

    const Told wanted = run(*from_file), told = run(unwritten);
    EXPECT_EQ(told, wanted);
    for (const float logit : told.logits) {
        ASSERT_TRUE(std::isfinite(logit));
    }
    Decoder other = load_unwritten(one, 8);
    EXPECT_NE(run(other).tokens, told.tokens);
}

std::vector<MadeCase> made_cases() {
    std::vector<MadeCase> out;
    for (const Type type : all_types) {
        out.push_back({"test-qwen3moe", type, {}});
    }
    out.push_back({"test-qwen2", Type::bf16, {}});
    out.push_back({"test-llama3", Type::q4_k, Type::q6_k});
    return out;
}

INSTANTIATE_TEST_SUITE_P(Types, WeightsMadeOnDevice, testing::ValuesIn(made_cases()), [](const auto& parameter) {
    std::string name = testing::PrintToString(parameter.param);
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
});

/// Pages of this process that are in memory, in bytes.
std::size_t resident_bytes() {
    std::ifstream in("/proc/self/statm");
    std::size_t all = 0, resident = 0;
    in >> all >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(UnwrittenModels, of_eight_billion_weights_take_addresses_and_no_memory) {
    for (const char* shape : {"llama-3.1-8b", "qwen3-8b"}) {
        const std::size_t before = resident_bytes();
        const Result<UnwrittenModel> model = lay_out_model(*find_shape(shape), {});
        ASSERT_TRUE(model.ok()) << model.error().message;
        EXPECT_GT(model->file.map().bytes().size(), std::size_t{15'000'000'000});
        EXPECT_LT(resident_bytes(), before + (std::size_t{1} << 30)); // a sanitizer takes some for addresses
        const Result<ModelConfig> config = read_config(model->file);
        ASSERT_TRUE(config.ok()) << config.error().message;
        const Result<Weights> weights = read_weights(model->file, *config);
        ASSERT_TRUE(weights.ok()) << weights.error().message;
        std::size_t known = 0;
        for (LayerWeights layer : weights->layers) {
            layer.each_linear([&](const Linear& linear) { known += model->matrices.count(linear.weight.data); });
        }
        EXPECT_EQ(known, config->layers * 7);
        EXPECT_EQ(model->matrices.count(weights->embedding.data), 1U);
        EXPECT_NEAR(weights->layers[0].attention_norm[0], 1, 0.1);
    }
}

TEST(UnwrittenModels, are_refused_by_a_backend_that_cannot_make_weights) {
    Result<UnwrittenModel> model = lay_out_model(*find_shape("test"), {});
    ASSERT_TRUE(model.ok());
    Options options;
    options.threads = test_threads();
    const Result<Decoder> decoder = Decoder::load(std::move(*model), options);
    ASSERT_FALSE(decoder.ok());
    EXPECT_EQ(decoder.error().message,
              "only the cuda backend makes random weights on its device: say "
              "--backend cuda, or plumb model make --shape SHAPE -o FILE and decode that file");
    MakeOptions packed;
    packed.type = Type::q8_0;
    EXPECT_FALSE(lay_out_model(*find_shape("test"), packed).ok());
}

} // namespace
} // namespace plumb::decoder
