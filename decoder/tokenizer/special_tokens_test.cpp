// SPDX-License-Identifier: Apache-2.0
#include "decoder/tokenizer/special_tokens.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace plumb::decoder {
namespace {

using Texts = std::vector<std::string>;

/// Every third is a user's.
std::vector<SpecialToken> listed(const Texts& texts) {
    std::vector<SpecialToken> out;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        out.push_back({texts[i], static_cast<std::int32_t>(i), i % 3 == 0});
    }
    return out;
}

SpecialTokens made(const Texts& texts) {
    Result<SpecialTokens> special = SpecialTokens::make(listed(texts));
    EXPECT_TRUE(special.ok()) << special.error().message;
    return std::move(*special);
}

std::map<std::size_t, std::string> places(const SpecialTokens& special, const Texts& texts, std::string_view text,
                                          bool control = true) {
    std::map<std::size_t, std::string> out;
    for (const Found& found : special.find(text, control).last_first) {
        EXPECT_EQ(found.length, texts[static_cast<std::size_t>(found.token)].size());
        out[found.at] = texts[static_cast<std::size_t>(found.token)];
    }
    return out;
}

/// One place, one token after the other.
std::map<std::size_t, std::string> tried(const Texts& texts, std::string_view text, bool control) {
    std::map<std::size_t, std::string> out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (std::size_t i = 0; i < texts.size(); ++i) {
            if ((control || i % 3 == 0) && text.substr(at).starts_with(texts[i]) &&
                (out.find(at) == out.end() || out[at].size() < texts[i].size())) {
                out[at] = texts[i];
            }
        }
    }
    return out;
}

TEST(SpecialTokens, without_tokens_nothing_is_found) {
    EXPECT_TRUE(SpecialTokens().find("text", true).last_first.empty());
    EXPECT_TRUE(made({}).find("", true).last_first.empty());
}

TEST(SpecialTokens, the_longest_at_each_place_is_found_also_within_others) {
    const Texts texts{"<a>", "<a>b", "a>", "\xff<"};
    const SpecialTokens special = made(texts);
    EXPECT_EQ(places(special, texts, "x<a>b<a>"),
              (std::map<std::size_t, std::string>{{1, "<a>b"}, {2, "a>"}, {5, "<a>"}, {6, "a>"}}));
    EXPECT_EQ(places(special, texts, "\xff<a>b", false),
              (std::map<std::size_t, std::string>{{0, "\xff<"}, {1, "<a>"}}));
}

TEST(SpecialTokens, random_tokens_are_found_as_by_trying_each_at_each_place) {
    std::mt19937 random(5);
    const auto word = [&](std::size_t longest) {
        std::string out(1 + random() % longest, 'a');
        for (char& c : out) {
            c = "ab\x80"[random() % 3];
        }
        return out;
    };
    for (int round = 0; round < 300; ++round) {
        std::map<std::string, bool> different;
        for (std::size_t i = 0, count = random() % 20; i < count; ++i) {
            different[word(6)] = true;
        }
        Texts texts;
        for (const auto& [text, there] : different) {
            texts.push_back(text);
        }
        const std::string text = word(60);
        for (const bool control : {true, false}) {
            ASSERT_EQ(places(made(texts), texts, text, control), tried(texts, text, control)) << round;
        }
    }
}

TEST(SpecialTokens, a_hundred_thousand_tokens_are_found_each_and_cost_a_text_no_more_than_two_moves_a_byte) {
    Texts texts;
    for (int i = 0; i < 100000; ++i) {
        texts.push_back("<|" + std::to_string(i) + std::string(static_cast<std::size_t>(i % 50), '|') + ">");
    }
    const SpecialTokens special = made(texts);
    std::string text;
    std::map<std::size_t, std::string> wanted;
    for (std::size_t i = 0; i < texts.size(); i += 7) {
        text += "<|<";
        wanted[text.size()] = texts[i];
        text += texts[i];
    }
    EXPECT_EQ(places(special, texts, text), wanted);
    EXPECT_LE(special.find(text, true).moves, 2 * text.size());
}

TEST(SpecialTokens, tokens_of_any_length_that_nearly_match_everywhere_cost_no_more_than_two_moves_a_byte) {
    Texts texts;
    for (std::size_t length = 1; length <= 2000; ++length) {
        texts.push_back("b" + std::string(length, 'a') + "b");
    }
    const SpecialTokens special = made(texts);
    const std::string text = std::string(100000, 'a') + "b" + std::string(3000, 'a') + "ab";
    const Finds finds = special.find(text, true);
    EXPECT_TRUE(finds.last_first.empty());
    EXPECT_LE(finds.moves, 2 * text.size());
}

TEST(SpecialTokens, more_bytes_than_are_searched_for_are_refused_in_one_sentence) {
    const std::string half(SpecialTokens::largest / 2, 'x');
    const Result<SpecialTokens> refused = SpecialTokens::make(listed({half, half + "x"}));
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
    EXPECT_NE(refused.error().message.find("--tokens"), std::string::npos);
}

} // namespace
} // namespace plumb::decoder
