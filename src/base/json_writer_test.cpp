// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>

namespace {

using plumb::base::append_json_number;
using plumb::base::append_json_string;
using plumb::base::JsonWriter;

std::string as_json(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
}

std::string number(double value) {
    std::string out;
    append_json_number(out, value);
    return out;
}

TEST(JsonWriter, T8_quotes_newlines_and_control_characters_are_escaped) {
    EXPECT_EQ(as_json("a\"b\\c\nd\te\rf"), R"("a\"b\\c\nd\te\rf")");
    EXPECT_EQ(as_json(std::string_view("\0\x1b\x1f", 3)), R"("\u0000\u001b\u001f")");
    for (int byte = 0; byte < 128; ++byte) {
        const std::string text(1, static_cast<char>(byte));
        EXPECT_EQ(nlohmann::json::parse(as_json(text)).get<std::string>(), text) << byte;
    }
}

TEST(JsonWriter, T8_invalid_utf8_is_replaced_and_valid_utf8_is_kept) {
    const std::string bad = "\xEF\xBF\xBD";
    EXPECT_EQ(as_json("\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), "\"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\"");
    EXPECT_EQ(as_json("x\x80y"), "\"x" + bad + "y\"");
    EXPECT_EQ(as_json("\xC0\xAF"), "\"" + bad + bad + "\"") << "overlong";
    EXPECT_EQ(as_json("\xED\xA0\x80"), "\"" + bad + bad + bad + "\"") << "surrogate";
    EXPECT_EQ(as_json("\xF4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"") << "above U+10FFFF";
    EXPECT_EQ(as_json("\xE2\x82"), "\"" + bad + bad + "\"") << "cut short";
}

TEST(JsonWriter, every_pair_of_bytes_gives_text_that_a_parser_accepts) {
    for (int first = 0; first < 256; ++first) {
        for (int second = 0; second < 256; ++second) {
            const std::string text{static_cast<char>(first), static_cast<char>(second), 'x'};
            ASSERT_TRUE(nlohmann::json::accept(as_json(text))) << first << ' ' << second;
        }
    }
}

TEST(JsonWriter, numbers_read_back_exactly_and_what_is_not_finite_is_null) {
    EXPECT_EQ(number(0.1), "0.1");
    EXPECT_EQ(number(4096.0), "4096");
    EXPECT_EQ(number(-3.0), "-3");
    EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "null");
    EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "null");
    for (const double value : {1e300, 5e-324, 9007199254740993.0, 123456789.123456789}) {
        EXPECT_EQ(nlohmann::json::parse(number(value)).get<double>(), value);
    }
}

TEST(JsonWriter, objects_and_arrays_nest) {
    std::string out;
    JsonWriter json(out);
    json.begin_object();
    json.field("a", 1);
    json.key("b");
    json.begin_array();
    json.value("x");
    json.value(true);
    json.null();
    json.begin_object();
    json.end();
    json.end();
    json.field("c", -2.5);
    json.end();
    EXPECT_EQ(out, R"({"a":1,"b":["x",true,null,{}],"c":-2.5})");
}

TEST(JsonWriter, indentation_changes_only_white_space) {
    std::string out;
    JsonWriter json(out, 2);
    json.begin_object();
    json.key("a");
    json.begin_array();
    json.value(1);
    json.end();
    json.key("empty");
    json.begin_array();
    json.end();
    json.end();
    EXPECT_EQ(out, "{\n  \"a\": [\n    1\n  ],\n  \"empty\": []\n}");
}

TEST(JsonWriter, misplaced_calls_still_give_valid_text) {
    std::string out;
    JsonWriter json(out);
    json.end();
    json.begin_object();
    json.value(1); // no key
    json.key("a");
    json.key("b"); // "a" has no value
    json.begin_array();
    json.key("in an array");
    json.value(2);
    json.finish();
    EXPECT_EQ(out, R"({"":1,"a":null,"b":[2]})");
    json.end();
    EXPECT_TRUE(nlohmann::json::accept(out));
}

TEST(JsonWriter, values_at_the_top_level_are_lines) {
    std::string out;
    JsonWriter json(out);
    json.value(1);
    json.begin_array();
    json.end();
    EXPECT_EQ(out, "1\n[]");
}

TEST(JsonWriter, the_caller_may_drain_the_text_between_calls) {
    std::string out;
    std::string all;
    JsonWriter json(out);
    json.begin_array();
    for (int index = 0; index < 3; ++index) {
        json.value(index);
        all += out;
        out.clear();
    }
    json.end();
    EXPECT_EQ(all + out, "[0,1,2]");
}

} // namespace
