// SPDX-License-Identifier: Apache-2.0
#include "decoder/tokenizer/tokenizer.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "decoder/gguf/builder.hpp"
#include "decoder/tokenizer/utf8.hpp"

namespace plumb::decoder {
namespace {

using Ids = std::vector<std::int32_t>;
using Texts = std::vector<std::string>;

/// A file with a tokenizer and nothing else.
class TokenizerFile {
  public:
    TokenizerFile& text(const std::string& key, const std::string& value) {
        key_of(key, 8).text(value);
        return *this;
    }
    TokenizerFile& number(const std::string& key, std::uint32_t value) {
        key_of(key, 4).put(value);
        return *this;
    }
    TokenizerFile& flag(const std::string& key, bool value) {
        key_of(key, 7).put(static_cast<std::uint8_t>(value));
        return *this;
    }
    TokenizerFile& texts(const std::string& key, const Texts& values) {
        key_of(key, 9).put(std::uint32_t{8}).put(static_cast<std::uint64_t>(values.size()));
        for (const std::string& value : values) {
            body_.text(value);
        }
        return *this;
    }
    TokenizerFile& types(const std::vector<TokenType>& values) {
        key_of("token_type", 9).put(std::uint32_t{5}).put(static_cast<std::uint64_t>(values.size()));
        for (const TokenType value : values) {
            body_.put(static_cast<std::int32_t>(value));
        }
        return *this;
    }
    TokenizerFile& scores(const std::vector<float>& values) {
        key_of("scores", 9).put(std::uint32_t{6}).put(static_cast<std::uint64_t>(values.size()));
        for (const float value : values) {
            body_.put(value);
        }
        return *this;
    }
    [[nodiscard]] std::string bytes() const {
        gguf::Builder file;
        file.header(0, entries_);
        const auto whole = file.bytes(), rest = body_.bytes();
        std::string out(reinterpret_cast<const char*>(whole.data()), whole.size());
        out.append(reinterpret_cast<const char*>(rest.data()), rest.size());
        return out;
    }
    [[nodiscard]] Result<Tokenizer> make() const { return made_of(bytes()); }
    static Result<Tokenizer> made_of(const std::string& bytes) {
        const Result<gguf::Contents> contents = gguf::parse(std::as_bytes(std::span(bytes)), "test");
        if (!contents) {
            return contents.error();
        }
        return Tokenizer::make(*contents);
    }

  private:
    gguf::Builder& key_of(const std::string& key, std::uint32_t type) {
        ++entries_;
        return body_.text("tokenizer.ggml." + key).put(type);
    }
    gguf::Builder body_;
    std::uint64_t entries_ = 0;
};

constexpr const char* gap = "\xc4\xa0"; // how byte-pair vocabularies write a space

struct Pairs {
    Texts tokens;
    Texts merges;
    std::vector<TokenType> types;

    Pairs() {
        tokens.assign(byte_alphabet().begin(), byte_alphabet().end());
        types.assign(256, TokenType::normal);
    }
    std::int32_t add(const std::string& text, TokenType type = TokenType::normal) {
        tokens.push_back(text);
        types.push_back(type);
        return static_cast<std::int32_t>(tokens.size()) - 1;
    }
    std::int32_t merge(const std::string& left, const std::string& right) {
        merges.push_back(left + " " + right);
        return add(left + right);
    }
    [[nodiscard]] TokenizerFile file(const std::string& pre) const {
        return TokenizerFile()
            .text("model", "gpt2")
            .text("pre", pre)
            .texts("tokens", tokens)
            .types(types)
            .texts("merges", merges);
    }
};

/// Pieces with their scores, and a token for each byte behind them.
struct Pieces {
    Texts tokens{"<unk>", "<s>", "</s>"};
    std::vector<float> scores{0, 0, 0};
    std::vector<TokenType> types{TokenType::unknown, TokenType::control, TokenType::control};

    std::int32_t add(const std::string& text, float score, TokenType type = TokenType::normal) {
        tokens.push_back(text);
        scores.push_back(score);
        types.push_back(type);
        return static_cast<std::int32_t>(tokens.size()) - 1;
    }
    void add_bytes() {
        constexpr char digits[] = "0123456789ABCDEF";
        for (unsigned byte = 0; byte < 256; ++byte) {
            add(std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">", 0, TokenType::byte);
        }
    }
    [[nodiscard]] TokenizerFile file() const {
        return TokenizerFile()
            .text("model", "llama")
            .texts("tokens", tokens)
            .types(types)
            .scores(scores)
            .number("bos_token_id", 1)
            .number("eos_token_id", 2)
            .number("unknown_token_id", 0);
    }
};

Ids encoded(Tokenizer& tokenizer, const std::string& text, const EncodeOptions& options = {}) {
    const Result<Ids> ids = tokenizer.encode(text, options);
    EXPECT_TRUE(ids.ok()) << (ids.ok() ? "" : ids.error().message);
    return ids.ok() ? *ids : Ids{};
}

std::string random_text(std::mt19937_64& random, bool valid) {
    std::string out;
    const std::size_t length = random() % 40;
    for (std::size_t i = 0; i < length; ++i) {
        const std::uint64_t kind = random() % (valid ? 5 : 6);
        std::uint32_t c = 0;
        if (kind <= 1) {
            c = static_cast<std::uint32_t>(" \t\n\r'.,19azAZ<|>_"[random() % 17]);
        } else if (kind == 2) {
            c = 0x20 + static_cast<std::uint32_t>(random() % 95);
        } else if (kind == 3) {
            c = 0x80 + static_cast<std::uint32_t>(random() % 0x2000);
        } else if (kind == 4) {
            c = static_cast<std::uint32_t>(random() % 0x110000);
        } else {
            out += static_cast<char>(random() % 256);
            continue;
        }
        if (c >= 0xd800 && c < 0xe000) {
            c = 'x';
        }
        if (c == 0x2581) {
            c = 'y'; // stands for a space in scored pieces
        }
        if (c < 0x80) {
            out += static_cast<char>(c);
        } else if (c < 0x800) {
            (out += static_cast<char>(0xc0 | c >> 6)) += static_cast<char>(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            ((out += static_cast<char>(0xe0 | c >> 12)) += static_cast<char>(0x80 | (c >> 6 & 0x3f))) +=
                static_cast<char>(0x80 | (c & 0x3f));
        } else {
            (((out += static_cast<char>(0xf0 | c >> 18)) += static_cast<char>(0x80 | (c >> 12 & 0x3f))) +=
             static_cast<char>(0x80 | (c >> 6 & 0x3f))) += static_cast<char>(0x80 | (c & 0x3f));
        }
    }
    return out;
}

Texts words(const std::string& pre, const std::string& text) {
    const Result<Splitter> splitter = Splitter::make(pre);
    EXPECT_TRUE(splitter.ok());
    const auto cut = splitter->split(text);
    EXPECT_TRUE(cut.ok());
    return {cut->begin(), cut->end()};
}

TEST(Splitter, each_family_cuts_by_its_own_rule) {
    const std::string text = "Hello, I'M here: 12345 x\n\n  y  ";
    EXPECT_EQ(words("gpt-2", text),
              (Texts{"Hello", ",", " I", "'", "M", " here", ":", " 12345", " x", "\n\n ", " y", "  "}));
    EXPECT_EQ(words("llama-bpe", text),
              (Texts{"Hello", ",", " I", "'M", " here", ":", " ", "123", "45", " x", "\n\n", " ", " y", "  "}));
    EXPECT_EQ(words("qwen2", text), (Texts{"Hello", ",", " I", "'M", " here", ":", " ", "1", "2", "3", "4", "5", " x",
                                           "\n\n", " ", " y", "  "}));
    EXPECT_EQ(words("smollm", "ab 12"), (Texts{"ab", " ", "1", "2"}));
    EXPECT_EQ(words("smollm", "ab  12\n\n3   c"), (Texts{"ab", "  ", "1", "2", "\n\n", "3", "  ", " c"}));
    EXPECT_EQ(words("tekken", "camelCase HTTPServer"), (Texts{"camel", "Case", " HTTPServer"}));
}

TEST(Splitter, letters_and_digits_are_those_of_all_scripts) {
    EXPECT_EQ(words("gpt-2", "h\xc3\xa9llo \xd0\xbc\xd0\xb8\xd1\x80 \xd9\xa1\xd9\xa2"),
              (Texts{"h\xc3\xa9llo", " \xd0\xbc\xd0\xb8\xd1\x80", " \xd9\xa1\xd9\xa2"}));
}

TEST(Splitter, bytes_that_are_no_text_are_kept) {
    const std::string text = "ab\xff\xfe"
                             "cd \xe2\x82";
    std::string joined;
    for (const std::string& word : words("llama-bpe", text)) {
        joined += word;
    }
    EXPECT_EQ(joined, text);
}

TEST(Splitter, an_unknown_rule_is_named) {
    const Result<Splitter> splitter = Splitter::make("klingon");
    ASSERT_FALSE(splitter.ok());
    EXPECT_EQ(splitter.error().code, ErrorCode::unsupported);
    EXPECT_NE(splitter.error().message.find("\"klingon\""), std::string::npos);
    EXPECT_NE(splitter.error().message.find("--tokens"), std::string::npos);
}

TEST(Tokenizer, byte_pairs_merge_by_rank_and_not_from_left_to_right) {
    Pairs pairs;
    const std::int32_t lo = pairs.merge("l", "o");
    const std::int32_t ell = (pairs.merge("l", "l"), pairs.merge("e", "ll"));
    const std::int32_t gap_w = pairs.merge(gap, "w");
    Tokenizer tokenizer = *pairs.file("gpt-2").make();
    // "hello": lo has the lowest rank, so the second l is gone before ll could be made.
    EXPECT_EQ(encoded(tokenizer, "hello"), (Ids{'h', 'e', 'l', lo}));
    EXPECT_EQ(encoded(tokenizer, "hell w"), (Ids{'h', ell, gap_w}));
    EXPECT_EQ(encoded(tokenizer, "w"), (Ids{'w'})) << "without a space before it";
}

TEST(Tokenizer, of_equal_pairs_the_left_one_is_merged_first) {
    Pairs pairs;
    const std::int32_t aa = pairs.merge("a", "a");
    Tokenizer tokenizer = *pairs.file("gpt-2").make();
    EXPECT_EQ(encoded(tokenizer, "aaa"), (Ids{aa, 'a'}));
}

TEST(Tokenizer, merging_agrees_with_the_plain_definition_on_random_merges) {
    std::mt19937_64 random(7);
    for (int round = 0; round < 20; ++round) {
        Pairs pairs;
        std::vector<std::string> parts{"a", "b", "c", "d"};
        std::vector<std::pair<std::pair<std::string, std::string>, std::string>> rules;
        for (int i = 0; i < 30; ++i) {
            const std::string left = parts[random() % parts.size()], right = parts[random() % parts.size()];
            if (left.size() + right.size() > 12 || std::find(parts.begin(), parts.end(), left + right) != parts.end()) {
                continue;
            }
            pairs.merge(left, right);
            rules.push_back({{left, right}, left + right});
            parts.push_back(left + right);
        }
        Tokenizer tokenizer = *pairs.file("gpt-2").make();
        for (int i = 0; i < 50; ++i) {
            std::string word;
            for (std::size_t n = 1 + random() % 30; n > 0; --n) {
                word += "abcd"[random() % 4];
            }
            Texts truth;
            for (const char c : word) {
                truth.emplace_back(1, c);
            }
            for (bool merged = true; merged;) { // the lowest rank that occurs, its leftmost place
                merged = false;
                for (const auto& [pair, both] : rules) {
                    for (std::size_t at = 0; at + 1 < truth.size() && !merged; ++at) {
                        if (truth[at] == pair.first && truth[at + 1] == pair.second) {
                            truth[at] = both;
                            truth.erase(truth.begin() + static_cast<std::ptrdiff_t>(at) + 1);
                            merged = true;
                        }
                    }
                    if (merged) {
                        break;
                    }
                }
            }
            Texts found;
            for (const std::int32_t id : encoded(tokenizer, word)) {
                found.push_back(tokenizer.piece(id));
            }
            EXPECT_EQ(found, truth) << word;
        }
    }
}

TEST(Tokenizer, a_word_that_is_a_token_needs_no_merges_where_the_family_says_so) {
    Pairs pairs;
    const std::int32_t hello = pairs.add("hello");
    Tokenizer llama = *pairs.file("llama-bpe").make();
    EXPECT_EQ(encoded(llama, "hello"), (Ids{hello}));
    Tokenizer gpt = *pairs.file("gpt-2").make();
    EXPECT_EQ(encoded(gpt, "hello"), (Ids{'h', 'e', 'l', 'l', 'o'}));
}

TEST(Tokenizer, scored_pieces_merge_the_best_score_first) {
    Pieces pieces;
    const std::string mark = "\xe2\x96\x81";
    const std::int32_t m = pieces.add(mark, -1), h = pieces.add("h", -9), i = pieces.add("i", -9);
    const std::int32_t hi = pieces.add("hi", -3), mh = pieces.add(mark + "h", -2);
    pieces.add_bytes();
    Tokenizer tokenizer = *pieces.file().make();
    EXPECT_EQ(encoded(tokenizer, "hi"), (Ids{1, mh, i}));
    EXPECT_EQ(encoded(tokenizer, "hi", {false, true}), (Ids{mh, i}));
    EXPECT_EQ(encoded(tokenizer, "ihi i"), (Ids{1, m, i, hi, m, i}));
    EXPECT_NE(h, hi);
    const Ids bytes = encoded(tokenizer, "\xc3\xa9");
    ASSERT_EQ(bytes.size(), 4u) << "a character that is no token is written in bytes";
    EXPECT_EQ(tokenizer.piece(bytes[2]), "\xc3");
    EXPECT_EQ(tokenizer.decode(encoded(tokenizer, " hi  \xc3\xa9")), " hi  \xc3\xa9");
}

TEST(Tokenizer, each_of_a_hundred_thousand_control_tokens_is_found) {
    Pairs pairs;
    std::string text;
    Ids wanted;
    for (int i = 0; i < 100000; ++i) {
        const std::string name = "<|" + std::to_string(i) + "|>";
        wanted.push_back(pairs.add(name, TokenType::control));
        wanted.push_back('<'); // the vocabulary begins with the bytes
        text += name + "<";
    }
    Tokenizer tokenizer = std::move(*pairs.file("gpt-2").make());
    EXPECT_EQ(encoded(tokenizer, text), wanted);
}

TEST(Tokenizer, special_tokens_are_found_in_the_text_the_longest_first) {
    Pairs pairs;
    const std::int32_t end = pairs.add("<|end|>", TokenType::control);
    const std::int32_t ending = pairs.add("<|end|>!", TokenType::control);
    const std::int32_t tool = pairs.add("[tool]", TokenType::user);
    Tokenizer tokenizer = *pairs.file("gpt-2").make();
    EXPECT_EQ(encoded(tokenizer, "a<|end|>b"), (Ids{'a', end, 'b'}));
    EXPECT_EQ(encoded(tokenizer, "<|end|>!"), (Ids{ending}));
    EXPECT_EQ(encoded(tokenizer, "[tool]<|end|>", {true, false}).front(), tool);
    EXPECT_EQ(encoded(tokenizer, "[tool]<|end|>", {true, false}).size(), 8u) << "control tokens only where asked for";
    EXPECT_TRUE(tokenizer.stops(end));
    EXPECT_FALSE(tokenizer.stops(tool));
    EXPECT_EQ(tokenizer.piece(end), "");
    EXPECT_EQ(tokenizer.piece(tool), "[tool]");
    EXPECT_EQ(tokenizer.piece(-1), "");
    EXPECT_EQ(tokenizer.piece(1 << 30), "");
}

TEST(Tokenizer, behind_a_special_token_a_text_of_scored_pieces_begins_again) {
    Pieces pieces;
    const std::int32_t tool = pieces.add("[tool]", 0, TokenType::user);
    const std::int32_t space = pieces.add("\xe2\x96\x81", -1), a = pieces.add("a", -2);
    const std::int32_t spaced_a = pieces.add(pieces.tokens[static_cast<std::size_t>(space)] + "a", -3);
    const EncodeOptions text{false, true};
    Tokenizer spaced = *pieces.file().flag("add_space_prefix", true).make();
    EXPECT_EQ(encoded(spaced, "aa</s>a[tool] a<unk>a", text),
              (Ids{spaced_a, a, 2, spaced_a, tool, space, spaced_a, 0, spaced_a}));
    EXPECT_EQ(encoded(spaced, "<s></s>", text), (Ids{1, 2})) << "no space between two";
    EXPECT_EQ(spaced.decode(encoded(spaced, "aa[tool] a<unk>a")), "aa[tool] a<unk>a");
    Tokenizer plain = *pieces.file().flag("add_space_prefix", false).make();
    EXPECT_EQ(encoded(plain, "a</s>a[tool] a", text), (Ids{a, 2, a, tool, spaced_a}));
    EXPECT_EQ(plain.decode(encoded(plain, " a[tool] a")), " a[tool] a");
}

TEST(Tokenizer, the_begin_token_comes_first_where_the_file_says_so) {
    Pairs pairs;
    const auto begin = static_cast<std::uint32_t>(pairs.add("<s>", TokenType::control));
    Tokenizer with = *pairs.file("gpt-2").number("bos_token_id", begin).flag("add_bos_token", true).make();
    EXPECT_EQ(encoded(with, "a"), (Ids{static_cast<std::int32_t>(begin), 'a'}));
    Tokenizer without = *pairs.file("gpt-2").number("bos_token_id", begin).make();
    EXPECT_EQ(encoded(without, "a"), (Ids{'a'}));
}

TEST(Tokenizer, ten_thousand_random_texts_come_back_byte_for_byte) {
    Pairs pairs;
    for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
             {"a", "z"}, {gap, "a"}, {"A", "Z"}, {"1", "9"}, {"'", "a"}, {gap, gap}, {"\xc3\x83", "\xc2\xa9"}}) {
        pairs.merge(left, right);
    }
    std::mt19937_64 random(11);
    for (const char* pre : {"gpt-2", "llama-bpe", "qwen2", "smollm", "tekken"}) {
        Tokenizer tokenizer = *pairs.file(pre).make();
        for (int i = 0; i < 10'000; ++i) {
            const std::string text = random_text(random, i % 2 == 0);
            ASSERT_EQ(tokenizer.decode(encoded(tokenizer, text)), text) << pre;
        }
    }
    Pieces pieces;
    const std::string mark = "\xe2\x96\x81";
    pieces.add(mark, -1);
    pieces.add(mark + "a", -2);
    pieces.add("a", -5);
    pieces.add("az", -3);
    pieces.add("z", -5);
    pieces.add_bytes();
    for (const bool space : {true, false}) {
        Tokenizer tokenizer = *pieces.file().flag("add_space_prefix", space).make();
        for (int i = 0; i < 10'000; ++i) {
            const std::string text = random_text(random, i % 2 == 0);
            const Ids ids = encoded(tokenizer, text);
            ASSERT_EQ(tokenizer.decode(ids), text);
        }
    }
}

TEST(Tokenizer, what_is_missing_or_unknown_is_named) {
    const auto message = [](const TokenizerFile& file) {
        const Result<Tokenizer> made = file.make();
        return made.ok() ? std::string() : made.error().message;
    };
    EXPECT_NE(message(TokenizerFile()).find("no tokenizer"), std::string::npos);
    EXPECT_NE(message(TokenizerFile().text("model", "bert")).find("\"bert\""), std::string::npos);
    EXPECT_NE(message(TokenizerFile().text("model", "gpt2")).find("tokenizer.ggml.tokens is missing"),
              std::string::npos);
    EXPECT_NE(message(TokenizerFile().text("model", "gpt2").number("tokens", 3)).find("is no array"),
              std::string::npos);
    EXPECT_NE(message(TokenizerFile().text("model", "llama").texts("tokens", {"a", "b"}).scores({1})).find("scores"),
              std::string::npos);
    EXPECT_NE(
        message(TokenizerFile().text("model", "gpt2").texts("tokens", {"a"}).texts("merges", {"x"})).find("merges"),
        std::string::npos);
    Tokenizer few = *TokenizerFile().text("model", "gpt2").texts("tokens", {"a"}).texts("merges", {}).make();
    const Result<Ids> ids = few.encode("b");
    ASSERT_FALSE(ids.ok());
    EXPECT_NE(ids.error().message.find("0x62"), std::string::npos);
}

TEST(Tokenizer, names_in_the_file_cannot_command_the_terminal_that_shows_them) {
    const std::string evil = "\x1b[31m\n" + std::string(10000, 'x');
    const Result<Tokenizer> kind = TokenizerFile().text("model", evil).make();
    const Result<Tokenizer> rule =
        TokenizerFile().text("model", "gpt2").text("pre", evil).texts("tokens", {"a"}).texts("merges", {}).make();
    ASSERT_FALSE(kind.ok());
    ASSERT_FALSE(rule.ok());
    for (const std::string& sentence : {kind.error().message, rule.error().message}) {
        EXPECT_NE(sentence.find("\\x1b[31m\\x0a"), std::string::npos) << sentence;
        EXPECT_LT(sentence.size(), 500U);
    }
}

TEST(Tokenizer, damaged_vocabularies_are_refused_or_used_but_never_crash) {
    Pairs pairs;
    pairs.merge("a", "b");
    pairs.add("<|end|>", TokenType::control);
    Pieces pieces;
    pieces.add("a", -1);
    pieces.add_bytes();
    const std::string files[] = {pairs.file("qwen2").bytes(), pieces.file().bytes()};
    std::mt19937_64 random(3);
    std::size_t used = 0;
    for (int i = 0; i < 4000; ++i) {
        std::string bytes = files[i % 2];
        for (std::size_t n = 1 + random() % 4; n > 0; --n) {
            bytes[random() % bytes.size()] = static_cast<char>(random());
        }
        Result<Tokenizer> tokenizer = TokenizerFile::made_of(bytes);
        if (!tokenizer.ok()) {
            continue;
        }
        ++used;
        const Result<Ids> ids = tokenizer->encode("ab <|end|> \xff"
                                                  "a");
        if (ids.ok()) {
            (void)tokenizer->decode(*ids);
        }
    }
    EXPECT_GT(used, 100u);
}

TEST(Utf8Stream, pieces_cut_anywhere_give_whole_characters_and_in_the_end_every_byte) {
    std::mt19937_64 random(5);
    for (int i = 0; i < 2000; ++i) {
        const bool valid = i % 2 == 0;
        const std::string text = random_text(random, valid);
        Utf8Stream stream;
        std::string out;
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t count = 1 + random() % 3;
            const std::string part = stream.take(std::string_view(text).substr(at, count));
            for (std::size_t c = 0; valid && c < part.size();) {
                EXPECT_EQ(character_bytes(std::string_view(part).substr(c)), wanted_bytes(part[c]));
                c += character_bytes(std::string_view(part).substr(c));
            }
            out += part;
            at += count;
        }
        if (valid) {
            EXPECT_EQ(out, text);
        }
        EXPECT_EQ(out + stream.finish(), text);
    }
}

} // namespace
} // namespace plumb::decoder
