// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_rules.hpp"

#include <fstream>
#include <gtest/gtest.h>
#include <random>

#include "import/rules/rules_file.hpp"

namespace plumb::imported {
namespace {

KernelRules built_in_kernel_rules() {
    Result<KernelRules> rules = KernelRules::load({});
    EXPECT_TRUE(rules) << rules.error().message;
    return std::move(*rules);
}

Result<KernelRules> rules_of(const std::string& text) { return KernelRules::compile({{"my.rules", text}}); }

std::string brick_of(const KernelLabel& label) {
    return std::string(label.brick) + (label.piece.empty() ? "" : ":" + std::string(label.piece));
}

TEST(KernelRules, KnowTheNamesOfManyEngines) {
    KernelRules rules = built_in_kernel_rules();
    std::ifstream in(PLUMB_KERNEL_NAMES);
    int names = 0;
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("# ")) {
            continue;
        }
        const std::size_t first = line.find('\t');
        const std::size_t second = line.find('\t', first + 1);
        ASSERT_NE(second, std::string::npos) << line;
        const KernelLabel label = rules.label(line.substr(0, first));
        EXPECT_EQ(brick_of(label), line.substr(first + 1, second - first - 1)) << line.substr(0, first);
        EXPECT_EQ(label.anchor, anchor_of(label.brick));
        EXPECT_EQ(label.evidence, label.certainty == Certainty::unknown ? LabelEvidence::none : LabelEvidence::name);
        ++names;
    }
    EXPECT_GT(names, 200);
    EXPECT_EQ(rules.given_up(), 0U);
}

TEST(KernelRules, TheFirstThatMatchesWins) {
    auto rules = rules_of("attention strong base ^my_\nmoe_router weak base ^my_router");
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_EQ(rules->label("my_router").brick, "attention");
    EXPECT_EQ(rules->label("MY_ROUTER").brick, "attention") << "case is ignored";
    EXPECT_EQ(rules->label("other").certainty, Certainty::unknown);
    EXPECT_EQ(rules->label("other").brick, "unknown");
}

TEST(KernelRules, ABaseRuleSeesTheArgumentsOnlyWhereNothingElseMatches) {
    auto rules = rules_of("activation strong base silu\nquantise strong base quant\nmoe_experts strong whole Type\\)2\n"
                          "unwrap base ^launch$");
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_EQ(rules->label("void quant_kernel<silu>(int)").brick, "quantise");
    EXPECT_EQ(rules->label("void kernel<silu>(int)").brick, "activation");
    EXPECT_EQ(rules->label("void launch<quant<silu> >(int)").brick, "activation") << "its arguments are its name";
    EXPECT_EQ(rules->label("void gemm<(Type)2>(int)").brick, "moe_experts");
    EXPECT_EQ(rules->label("void gemm<(Type)1>(int)").brick, "unknown");
}

TEST(KernelRules, ThoseOfAFileStandInFront) {
    const std::string file = ::testing::TempDir() + "front.rules";
    std::ofstream(file) << "my_brick:half strong base ^nvjet_\n";
    auto rules = KernelRules::load({file});
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_EQ(brick_of(rules->label("nvjet_tst_64x16")), "my_brick:half");
    EXPECT_EQ(rules->label("nvjet_tst_64x16").anchor, Anchor::none);
    EXPECT_EQ(rules->label("kernel_mha").brick, "attention");
}

TEST(KernelRules, AnErrorIsOneSentenceWithFileAndLine) {
    EXPECT_EQ(rules_of("# first\nattention strong base (a").error().message,
              "my.rules:2: the regex is wrong at its byte 2: missing closing parenthesis");
    EXPECT_EQ(rules_of("attention strong base (*UTF)a").error().message.find("my.rules:1: the regex is wrong"), 0U);
    EXPECT_EQ(KernelRules::load({"/nowhere/my.rules"}).error().message,
              "the rules file /nowhere/my.rules cannot be read: check its name");
    EXPECT_EQ(KernelRules::load({"/"}).error().message, "/ is a folder: name a rules file");
    EXPECT_EQ(KernelRules::load({"/dev/zero"}).error().message, "/dev/zero is no rules file: it is larger than 1 MiB");
}

TEST(KernelRules, HostileNamesEndSoon) {
    KernelRules rules = built_in_kernel_rules();
    std::vector<std::string> names{std::string(10'240, 'a'),
                                   std::string(10'240, '<'),
                                   std::string(5000, '(') + std::string(5000, ')'),
                                   std::string(10'240, '\0'),
                                   "\x1b[31m\r\n\t",
                                   "\xff\xfe\x80",
                                   "",
                                   "_Z",
                                   std::string("_Z\0x", 4)};
    std::string text;
    for (const std::string_view part :
         {"triton_", "_softmax", "masked", "fill", "embedding_", "mean_", "at::native::"}) {
        std::string many;
        while (many.size() < 10'240) {
            many += part;
        }
        names.push_back(many);
        names.push_back("void at::native::" + many);
        text += part;
    }
    names.push_back(text);
    for (const std::string& name : names) {
        const KernelLabel label = rules.label(name);
        EXPECT_FALSE(label.brick.empty());
    }
}

TEST(KernelRules, ARuleThatTakesTooLongIsGivenUpAndCounted) {
    auto rules = rules_of("attention strong base ^(a+)+$\nmoe_router strong base a!");
    ASSERT_TRUE(rules) << rules.error().message;
    EXPECT_EQ(rules->label(std::string(64, 'a') + "!").brick, "moe_router");
    EXPECT_EQ(rules->given_up(), 1U);
    EXPECT_EQ(rules->label("aaa").brick, "attention");
}

TEST(KernelRules, ADamagedFileIsReadOrRefusedWithItsLine) {
    std::mt19937 engine(17);
    const auto random = [&](std::size_t below) {
        return static_cast<std::size_t>(engine() % below);
    };
    for (int trial = 0; trial < 100; ++trial) {
        std::string text(built_in_rules().substr(random(built_in_rules().size() - 2000), 2000));
        for (std::size_t n = 1 + random(20); n > 0; --n) {
            text[random(text.size())] = static_cast<char>(random(256));
        }
        Result<KernelRules> rules = rules_of(text);
        if (rules) {
            EXPECT_FALSE(rules->label("void vllm::act_and_mul_kernel<c10::Half>(int)").brick.empty());
        } else {
            EXPECT_EQ(rules.error().message.find("my.rules:"), 0U) << rules.error().message;
            EXPECT_EQ(rules.error().message.find('\n'), std::string::npos);
        }
    }
}

TEST(KernelRules, LabelsOutliveAMove) {
    auto rules = rules_of("a_brick_of_a_longer_name:and_a_piece strong base x");
    ASSERT_TRUE(rules) << rules.error().message;
    const KernelLabel label = rules->label("x");
    const KernelRules moved = std::move(*rules);
    EXPECT_EQ(brick_of(label), "a_brick_of_a_longer_name:and_a_piece");
}

} // namespace
} // namespace plumb::imported
