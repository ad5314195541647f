// SPDX-License-Identifier: Apache-2.0
// What needs DuckDB itself is in tests/scale/parquet.
#include "sql/sql.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace {

using namespace plumb;
using namespace plumb::sql;
using Kind = QueryColumn::Kind;

QueryTable some_table() {
    return {{{"brick", Kind::text}, {"us", Kind::number}, {"leaf", Kind::truth}},
            {{"rms_norm", "1.5", "true"},
             {"a,\"b\"\n", "nan", "false"},
             {std::nullopt, std::nullopt, std::nullopt},
             {"", "9007199254740993", "true"}}};
}

TEST(Sql, eight_queries_come_with_it_and_each_says_what_it_answers) {
    EXPECT_EQ(shipped_queries().size(), 8U);
    for (const ShippedQuery& query : shipped_queries()) {
        EXPECT_FALSE(query.meaning.empty()) << query.name;
        EXPECT_EQ(query.text.substr(0, 3), "-- ") << query.name;
        EXPECT_NE(query.text.find("\nfrom "), std::string::npos) << query.name;
    }
}

TEST(Sql, a_table_has_a_line_for_each_row_with_numbers_to_the_right_and_nothing_that_moves_a_terminal) {
    const std::string text = text_of(some_table(), {});
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
    EXPECT_NE(text.find("rms_norm                1.5   true"), std::string::npos) << text;
    EXPECT_NE(text.find("-                         -   -"), std::string::npos) << text;
}

TEST(Sql, csv_tells_an_empty_text_from_a_missing_one) {
    EXPECT_EQ(csv_of(some_table()), "brick,us,leaf\r\n"
                                    "rms_norm,1.5,true\r\n"
                                    "\"a,\"\"b\"\"\n\",nan,false\r\n"
                                    ",,\r\n"
                                    "\"\",9007199254740993,true\r\n");
}

TEST(Sql, json_has_numbers_as_they_are_and_words_for_what_is_no_number) {
    EXPECT_EQ(json_of(some_table()), "[{\"brick\":\"rms_norm\",\"us\":1.5,\"leaf\":true},"
                                     "{\"brick\":\"a,\\\"b\\\"\\n\",\"us\":\"nan\",\"leaf\":false},"
                                     "{\"brick\":null,\"us\":null,\"leaf\":null},"
                                     "{\"brick\":\"\",\"us\":9007199254740993,\"leaf\":true}]\n");
    EXPECT_EQ(nlohmann::json::parse(json_of({{{"n", Kind::number}}, {}})).size(), 0U);
}

TEST(Sql, without_duckdb_one_sentence_says_how_to_get_it) {
    const Status here = ready();
    if (here.ok()) {
        GTEST_SKIP() << "DuckDB is installed";
    }
    EXPECT_EQ(here.error().code, ErrorCode::unavailable);
    EXPECT_NE(here.error().message.find("npm install @duckdb/node-bindings-linux-x64"), std::string::npos);
    EXPECT_EQ(here.error().message.find('\n'), std::string::npos);
    const std::atomic<bool> stop{false};
    EXPECT_EQ(query("select 1", "/nowhere", {}, stop).error().message, here.error().message);
}

} // namespace
