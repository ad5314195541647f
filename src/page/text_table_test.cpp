// SPDX-License-Identifier: Apache-2.0
#include "page/text_table.hpp"

#include <gtest/gtest.h>

namespace {

using namespace plumb::page;

TEST(TextTable, columns_align_and_lines_have_no_trailing_blanks) {
    TextTable table;
    table.add_column("name", TextTable::Align::left);
    table.add_column("n", TextTable::Align::right);
    table.add_column("source", TextTable::Align::left);
    table.add_row({"a", "1", "cpu_tsc"});
    table.add_row({"long \xC3\xA9", "1000"});
    std::string out;
    table.append_to(out, "", "");
    EXPECT_EQ(out, "name        n   source\n"
                   "a           1   cpu_tsc\n"
                   "long \xC3\xA9   1000\n");
}

TEST(TextTable, numbers_keep_their_decimals_and_never_fake_a_zero) {
    EXPECT_EQ(fixed(412.04, 1), "412.0");
    EXPECT_EQ(fixed(0, 2), "0.00");
    EXPECT_EQ(fixed(0.004, 2), "<0.01");
    EXPECT_EQ(fixed(0.005, 2), "0.01");
    EXPECT_EQ(fixed(-0.004, 2), ">-0.01");
    EXPECT_EQ(fixed(1e300, 0).size(), 301U);
}

TEST(TextTable, decimals_follow_the_largest_value) {
    EXPECT_EQ(decimals_for(412, 4, 1, 3), 1);
    EXPECT_EQ(decimals_for(41.2, 4, 1, 3), 2);
    EXPECT_EQ(decimals_for(0.04, 4, 1, 3), 3);
    EXPECT_EQ(decimals_for(0, 4, 1, 3), 1);
}

TEST(TextTable, counts_are_grouped) {
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(12345678), "12,345,678");
}

TEST(TextTable, T8_names_cannot_command_a_terminal) {
    const std::string bad = "\xEF\xBF\xBD";
    EXPECT_EQ(printable("a\nb\x1b[2Jc", 40), "a" + bad + "b" + bad + "[2Jc");
    EXPECT_EQ(printable("\xC2\x9B", 40), bad) << "C1 control sequence introducer";
    EXPECT_EQ(printable("x\xFFy", 40), "x" + bad + "y");
    EXPECT_EQ(printable("caf\xC3\xA9", 40), "caf\xC3\xA9");
}

TEST(TextTable, long_names_are_cut_with_a_mark) {
    EXPECT_EQ(printable("abcdef", 4), "abc\xE2\x80\xA6");
    EXPECT_EQ(printable("abcd", 4), "abcd");
    EXPECT_EQ(columns_of(printable(std::string(5000, 'x'), 40)), 40U);
}

TEST(TextTable, wide_characters_take_two_columns_and_marks_none) {
    EXPECT_EQ(columns_of("attention \u00B7 \u2581\u2588"), 14U);
    EXPECT_EQ(columns_of("\u6CE8\u610F\u529B"), 6U);     // 注意力
    EXPECT_EQ(columns_of("\uC8FC\uC758"), 4U);           // 주의
    EXPECT_EQ(columns_of("\uFF21\uFF71\U0001F680"), 5U); // full width, half width, emoji
    EXPECT_EQ(columns_of("e\u0301\u0301"), 1U);
    EXPECT_EQ(columns_of("\xFF"), 1U);
    EXPECT_EQ(printable("\u6CE8\u610F\u529B", 6), "\u6CE8\u610F\u529B");
    EXPECT_EQ(printable("\u6CE8\u610F\u529B", 5), "\u6CE8\u610F\u2026");
    EXPECT_EQ(printable("\u6CE8\u610F\u529B", 4), "\u6CE8\u2026"); // one column stays free
    EXPECT_EQ(printable("e\u0301fgh", 3), "e\u0301f\u2026");
    EXPECT_EQ(printable("fge\u0301", 3), "fge\u0301");
    TextTable table({"name"}, {"n"});
    table.add_row({"\u6CE8\u610F\u529B", "1"});
    table.add_row({"e\u0301", "22"});
    std::string out;
    table.append_to(out, "", "");
    EXPECT_EQ(out, "name      n\n\u6CE8\u610F\u529B    1\ne\u0301        22\n");
}

} // namespace
