// SPDX-License-Identifier: Apache-2.0
// The decoder's logits against the double reference, for every family and type. Tolerances, relative to the largest logit:
// 2e-5 where everything is computed in float, as with every packed type; 3e-2 where activations are rounded to bf16 (8 bits)
// before each product.
#include "decoder/model/reference.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "decoder/test_support.hpp"

namespace plumb::decoder {
namespace {

struct Case {
    const char* shape;
    Type type;
    bool widen;
    double tolerance;
    std::optional<Type> second = {}; // in files of mixed types
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.shape << " " << layout_of(c.type).word
               << (c.second ? " and " + std::string(layout_of(*c.second).word) : "") << (c.widen ? " widened" : "");
}

constexpr double float_tolerance = 2e-5;
constexpr double bf16_tolerance = 3e-2;

class Logits : public testing::TestWithParam<Case> {
  protected:
    Options options(std::size_t chunk) const {
        Options out;
        out.threads = test_threads();
        out.context = 160;
        out.chunk = chunk;
        out.widen_bf16 = GetParam().widen;
        return out;
    }
    std::string model() const { return make_test_model(folder_, GetParam().shape, GetParam().type, GetParam().second); }

    TestFolder folder_;
    OffRecorder off_;
};

double largest_difference(std::span<const float> actual, const std::vector<double>& expected) {
    double worst = 0;
    double scale = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(actual[i]) - expected[i]));
        scale = std::max(scale, std::abs(expected[i]));
    }
    return worst / scale;
}

std::vector<double> as_doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST_P(Logits, T16_agree_with_the_double_reference_after_a_prompt) {
    const std::string path = model();
    Result<Decoder> decoder = Decoder::load(path, options(64));
    ASSERT_TRUE(decoder.ok()) << decoder.error().message;
    const auto prompt = decoder->random_prompt(40, 3);
    ASSERT_TRUE(decoder->prefill(prompt, off_).ok());
    const auto expected = reference::logits(path, prompt);
    ASSERT_EQ(decoder->logits().size(), expected.size());
    EXPECT_LT(largest_difference(decoder->logits(), expected), GetParam().tolerance);
}

TEST_P(Logits, agree_with_the_double_reference_after_decode_steps) {
    const std::string path = model();
    Result<Decoder> decoder = Decoder::load(path, options(16));
    ASSERT_TRUE(decoder.ok()) << decoder.error().message;
    auto sequence = decoder->random_prompt(21, 4);
    ASSERT_TRUE(decoder->prefill(sequence, off_).ok());
    ASSERT_EQ(decoder->decode(9, off_).value(), 9U);
    ASSERT_EQ(decoder->tokens().size(), 10U);
    // The last sampled token was not fed back.
    sequence.insert(sequence.end(), decoder->tokens().begin(), decoder->tokens().end() - 1);
    EXPECT_LT(largest_difference(decoder->logits(), reference::logits(path, sequence)), GetParam().tolerance);
}

TEST_P(Logits, do_not_depend_on_the_size_of_prefill_chunks) {
    const std::string path = model();
    std::vector<double> first;
    for (const std::size_t chunk : {1U, 7U, 64U}) {
        Result<Decoder> decoder = Decoder::load(path, options(chunk));
        ASSERT_TRUE(decoder.ok()) << decoder.error().message;
        ASSERT_TRUE(decoder->prefill(decoder->random_prompt(100, 5), off_).ok());
        if (first.empty()) {
            first = as_doubles(decoder->logits());
        }
        EXPECT_LT(largest_difference(decoder->logits(), first), GetParam().tolerance) << "chunk " << chunk;
    }
}

TEST_P(Logits, after_decode_steps_equal_those_of_one_long_prefill) {
    const std::string path = model();
    Result<Decoder> stepped = Decoder::load(path, options(64));
    ASSERT_TRUE(stepped.ok()) << stepped.error().message;
    auto sequence = stepped->random_prompt(30, 6);
    ASSERT_TRUE(stepped->prefill(sequence, off_).ok());
    ASSERT_TRUE(stepped->decode(20, off_).ok());
    sequence.insert(sequence.end(), stepped->tokens().begin(), stepped->tokens().end() - 1);
    Result<Decoder> whole = Decoder::load(path, options(64));
    ASSERT_TRUE(whole.ok()) << whole.error().message;
    ASSERT_TRUE(whole->prefill(sequence, off_).ok());
    EXPECT_LT(largest_difference(stepped->logits(), as_doubles(whole->logits())), GetParam().tolerance);
}

TEST_P(Logits, of_each_sequence_of_a_batch_are_those_it_has_alone) {
    constexpr std::size_t batch = 5;
    const std::string path = model();
    Options wanted = options(16);
    wanted.batch = batch;
    Result<Decoder> together = Decoder::load(path, wanted);
    Result<Decoder> alone = Decoder::load(path, options(16));
    ASSERT_TRUE(together.ok() && alone.ok());
    std::vector<std::vector<std::int32_t>> prompts;
    for (std::size_t i = 0; i < batch; ++i) {
        prompts.push_back(together->random_prompt(9 + 7 * i, 20 + i));
        ASSERT_TRUE(together->prefill(prompts[i], off_, {}, i).ok());
    }
    ASSERT_EQ(together->decode(6, off_).value(), 6U);
    for (std::size_t i = 0; i < batch; ++i) {
        // The tokens of the batch are fed, so that a near tie cannot lead elsewhere.
        auto sequence = prompts[i];
        sequence.insert(sequence.end(), together->tokens(i).begin(), together->tokens(i).end() - 1);
        EXPECT_EQ(together->position(i), sequence.size());
        alone->reset();
        ASSERT_TRUE(alone->prefill(sequence, off_).ok());
        EXPECT_LT(largest_difference(together->logits(i), as_doubles(alone->logits())), GetParam().tolerance) << i;
    }
}

/// Families with odd rows in the types without blocks; all others in every type.
std::vector<Case> cases() {
    std::vector<Case> out;
    const auto add = [&](const char* shape, Type type) {
        out.push_back({shape, type, false, type == Type::bf16 ? bf16_tolerance : float_tolerance, {}});
        if (type == Type::bf16) {
            out.push_back({shape, type, true, float_tolerance, {}});
        }
    };
    for (const char* shape : {"test", "test-qwen2"}) {
        for (const Type type : {Type::f32, Type::bf16, Type::f16}) {
            add(shape, type);
        }
    }
    for (const char* shape : {"test-llama3", "test-mistral", "test-mixtral", "test-linear", "test-yarn", "test-qwen3",
                              "test-qwen3moe", "test-gemma"}) {
        for (const Type type : all_types) {
            add(shape, type);
        }
    }
    // bf16 beside another type meets f32 inputs.
    for (const char* shape : {"test-qwen3", "test-mixtral", "test-yarn"}) {
        for (const auto& [type, second] : {std::pair(Type::q4_k, Type::q6_k), std::pair(Type::q8_0, Type::bf16),
                                           std::pair(Type::bf16, Type::f32), std::pair(Type::f16, Type::q4_0)}) {
            out.push_back({shape, type, false,
                           second == Type::bf16 || type == Type::bf16 ? bf16_tolerance : float_tolerance, second});
        }
    }
    return out;
}

INSTANTIATE_TEST_SUITE_P(Families, Logits, testing::ValuesIn(cases()), [](const auto& parameter) {
    std::string name = testing::PrintToString(parameter.param);
    for (char& c : name) {
        if (c == ' ' || c == '-') {
            c = '_';
        }
    }
    return name;
});

} // namespace
} // namespace plumb::decoder
