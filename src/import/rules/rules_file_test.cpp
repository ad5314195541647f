// SPDX-License-Identifier: Apache-2.0
#include "import/rules/rules_file.hpp"

#include <gtest/gtest.h>

namespace plumb::imported {
namespace {

std::string read_error_of(std::string_view text) {
    const Result<std::vector<RuleLine>> rules = read_rules(text, "my.rules");
    return rules ? "" : rules.error().message;
}

TEST(RulesFile, HoldsOneRuleALine) {
    const auto rules =
        read_rules("# comment\n\n  moe_router strong base top_?k  \r\nelementwise:add\tweak\twhole\top add$\n"
                   "unwrap base ^launch$",
                   "my.rules");
    ASSERT_TRUE(rules) << rules.error().message;
    ASSERT_EQ(rules->size(), 3U);
    EXPECT_EQ(rules->at(0).number, 3U);
    EXPECT_EQ(rules->at(0).brick, "moe_router");
    EXPECT_EQ(rules->at(0).regex, "top_?k");
    EXPECT_EQ(rules->at(0).certainty, Certainty::strong);
    EXPECT_FALSE(rules->at(0).whole);
    EXPECT_EQ(rules->at(1).brick, "elementwise");
    EXPECT_EQ(rules->at(1).piece, "add");
    EXPECT_EQ(rules->at(1).certainty, Certainty::weak);
    EXPECT_EQ(rules->at(1).regex, "op add$") << "a regex holds blanks";
    EXPECT_TRUE(rules->at(1).whole);
    EXPECT_TRUE(rules->at(2).brick.empty());
    EXPECT_TRUE(read_rules("", "my.rules")->empty());
}

TEST(RulesFile, IsRefusedWithFileAndLine) {
    EXPECT_EQ(read_error_of("\nAttention strong base x"),
              "my.rules:2: \"Attention\" is no brick: write small letters, digits and _, with :piece or without");
    EXPECT_EQ(read_error_of("a: strong base x"),
              "my.rules:1: \"a:\" is no brick: write small letters, digits and _, with :piece or without");
    EXPECT_EQ(read_error_of("attention sure base x"), "my.rules:1: \"sure\" stands where strong or weak is expected");
    EXPECT_EQ(read_error_of("attention strong start x"),
              "my.rules:1: \"start\" stands where base or whole is expected");
    EXPECT_EQ(read_error_of("unwrap whole x"), "my.rules:1: \"whole\" stands where base is expected");
    EXPECT_EQ(read_error_of("attention strong base   "), "my.rules:1: the regex is missing");
    EXPECT_EQ(
        read_error_of(std::string_view("\x1b[2J\xff strong base x")),
        "my.rules:1: \"?[2J\xEF\xBF\xBD\" is no brick: write small letters, digits and _, with :piece or without");
    std::string many;
    for (int i = 0; i < 5000; ++i) {
        many += "a weak base b\n";
    }
    EXPECT_EQ(read_error_of(many), "my.rules:4097: there are more than 4096 rules");
}

} // namespace
} // namespace plumb::imported
