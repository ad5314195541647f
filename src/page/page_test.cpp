// SPDX-License-Identifier: Apache-2.0
#include "page/page.hpp"

#include <gtest/gtest.h>

#include "page/heat.hpp"
#include "page/options.hpp"
#include "page/schema.hpp"

namespace plumb {
namespace {

enum class Colour : std::uint8_t { red, green };
inline Words words_of(Colour) {
    static constexpr const char* words[] = {"red", "green"};
    return words;
}

struct Part {
    std::string name;
    std::optional<std::uint32_t> layer;
};
template <class V>
void describe(V& v, const Part& p) {
    v.type("part", "A part.");
    v("name", p.name, "what it is called");
    v("layer", p.layer, "only where it has one");
}

struct Whole {
    Colour colour = Colour::red;
    Figure time;
    std::vector<Part> parts;
    std::vector<std::optional<double>> values;
    std::vector<std::pair<std::string, std::uint64_t>> counts;
    bool device = false;
    double busy_ns = 0;
};
template <class V>
void describe(V& v, const Whole& w) {
    v.type("whole", "Everything.");
    v("colour", w.colour, "of it");
    v("time", w.time, "of it");
    v("parts", w.parts, "of it");
    v("values", w.values, "of runs");
    v.pairs("counts", "kernel", "count", w.counts, "by kernel");
    v.group("device", "of a device", w.device, [&](auto& inner) { inner("busy_ns", w.busy_ns, "busy"); });
}

Whole sample() {
    Whole whole;
    whole.colour = Colour::green;
    whole.time = {std::nullopt, "not measured"};
    whole.parts = {{"a", 3}, {"b", std::nullopt}};
    whole.values = {1.5, std::nullopt};
    whole.counts = {{"gemm", 2}};
    whole.device = true;
    return whole;
}

TEST(Describe, one_description_gives_the_document) {
    EXPECT_EQ(page::json_of("test.whole/1", sample(), 0),
              R"({"schema":"test.whole/1","colour":"green","time":{"absent":"not measured"},)"
              R"("parts":[{"name":"a","layer":3},{"name":"b"}],"values":[1.5,null],)"
              R"("counts":[{"kernel":"gemm","count":2}],"device":{"busy_ns":0}})"
              "\n");
    Whole none;
    EXPECT_EQ(page::json_of("test.whole/1", none, 0).find("device"), std::string::npos);
}

TEST(Describe, one_description_gives_the_schema) {
    const page::Form form = page::form_of<Whole>();
    const std::string schema = page::json_schema("test.whole/1", form);
    EXPECT_NE(schema.find("\"$ref\": \"#/$defs/part\""), std::string::npos) << schema;
    ASSERT_EQ(form.fields.size(), 6u);
    EXPECT_TRUE(form.fields[5].optional);
    EXPECT_FALSE(form.fields[0].optional);
    EXPECT_TRUE(form.fields[2].form.items[0].fields[1].optional);
    EXPECT_TRUE(form.fields[3].form.items[0].or_null);
}

TEST(Describe, one_description_gives_the_reference) {
    const std::string text = page::reference("test.whole/1", page::form_of<Whole>());
    EXPECT_NE(text.find("| `colour` | `red`, `green` | of it |"), std::string::npos) << text;
    EXPECT_NE(text.find("| `parts` | array of part | of it |"), std::string::npos);
    EXPECT_NE(text.find("### part\n"), std::string::npos);
    EXPECT_NE(text.find("| `device`.`busy_ns` | number | busy |"), std::string::npos);
}

struct Wish {
    std::uint64_t step = 7;
    std::optional<double> limit;
    Colour colour = Colour::green;
    std::vector<std::string> bricks;
    bool all = false;
};
template <class V>
void describe(V& v, Wish& w) {
    v("step", w.step, "which", page::Hints{.most = 100});
    v("limit", w.limit, "at most");
    v("colour", w.colour, "of it");
    v("brick", w.bricks, "which", page::Hints{.value = "BRICK"});
    v("all", w.all, "everything", page::Hints{.excludes = "step brick"});
}

TEST(Describe, one_description_gives_the_options) {
    Wish wish;
    page::OptionList list;
    describe(list, wish);
    ASSERT_EQ(list.options.size(), 5u);
    EXPECT_EQ(list.options[0].initial, "7");
    EXPECT_EQ(list.options[1].kind, AnswerOption::Kind::number);
    EXPECT_EQ(list.options[1].initial, "");
    EXPECT_EQ(list.options[2].choices, (std::vector<std::string>{"red", "green"}));
    EXPECT_TRUE(list.options[3].repeated);
    EXPECT_EQ(list.options[4].excludes, (std::vector<std::string>{"step", "brick"}));
}

TEST(Describe, one_description_reads_the_options) {
    const auto read = [](const OptionValues& values) {
        Wish wish;
        page::OptionReader reader(values);
        describe(reader, wish);
        return reader.status().ok() ? Result<Wish>(wish) : Result<Wish>(reader.status().error());
    };
    const Result<Wish> wish = read({{"step", "12"}, {"limit", "0.5"}, {"brick", "a"}, {"brick", "b"}, {"all", ""}});
    ASSERT_TRUE(wish.ok());
    EXPECT_EQ(wish->step, 12u);
    EXPECT_EQ(wish->limit, 0.5);
    EXPECT_EQ(wish->bricks, (std::vector<std::string>{"a", "b"}));
    EXPECT_TRUE(wish->all);
    for (const auto& [name, text] :
         OptionValues{{"step", "-1"}, {"step", "101"}, {"step", "1x"}, {"limit", ""}, {"colour", "blue"}}) {
        const Result<Wish> refused = read({{name, text}});
        ASSERT_FALSE(refused.ok()) << name << "=" << text;
        EXPECT_NE(refused.error().message.find("the option " + name), std::string::npos);
    }
}

TEST(Describe, a_word_that_is_none_is_refused_with_those_that_are) {
    Wish wish;
    const OptionValues values{{"colour", "blue"}};
    page::OptionReader reader(values);
    describe(reader, wish);
    EXPECT_EQ(reader.status().error().message, "the option colour takes red or green, not \"blue\"");
}

TEST(Page, reasons_stand_at_the_foot_each_once_with_what_had_it_first) {
    page::Page page;
    page::TextTable table({"brick"}, {"us"});
    const Figure absent{std::nullopt, "too few samples"};
    table.add_row({"a", page.figure("a", absent, 1e3, 1)});
    table.add_row({"b", page.figure("b", absent, 1e3, 1)});
    table.add_row({"c", page.figure("c", {1500.0, {}}, 1e3, 1)});
    page.table(std::move(table));
    page.reasons();
    page.note("a \x1b[31mnote");
    EXPECT_EQ(page::text_of(page, false), "brick    us\n"
                                          "a       n/a\n"
                                          "b       n/a\n"
                                          "c       1.5\n"
                                          "n/a  a: too few samples\n"
                                          "note  a \xEF\xBF\xBD[31mnote\n");
}

TEST(Page, T8_no_line_reaches_the_terminal_raw_whatever_stands_in_it) {
    page::Page page;
    page.reason("a\nFAKE \x1b[31m", {std::nullopt, "b\nFAKE"});
    page.reasons();
    page.line("c\nFAKE", page::Tone::heading);
    EXPECT_EQ(page::text_of(page, false), "n/a  a\xEF\xBF\xBD"
                                          "FAKE \xEF\xBF\xBD[31m: b\xEF\xBF\xBD"
                                          "FAKE\n"
                                          "c\xEF\xBF\xBD"
                                          "FAKE\n");
}

TEST(Page, colour_is_escapes_around_the_same_words) {
    page::Page page;
    page.marked("ODD  ", "layer 3");
    page.line({page::shade({150.0, {}}, {100.0, {}}, 0.125), page::shade({std::nullopt, "x"}, {100.0, {}}, 0.125)});
    EXPECT_EQ(page::text_of(page, false), "ODD  layer 3\n@ \n");
    EXPECT_EQ(page::text_of(page, true), "\x1b[33mODD  \x1b[0mlayer 3\n\x1b[48;5;196m \x1b[0m \n");
}

TEST(Page, markdown_has_tables_and_nothing_that_a_name_could_open) {
    page::Page page;
    page.line("decode", page::Tone::heading);
    page::TextTable table({"brick"}, {"us"});
    table.add_row({"a|b<i>", "1"});
    page.table(std::move(table));
    page.marked("ODD  ", "layer 3");
    page.verbatim("digraph {}\n");
    EXPECT_EQ(page::markdown_of(page), "### decode\n\n"
                                       "\n| brick | us |\n|---|--:|\n| a\\|b&lt;i&gt; | 1 |\n\n"
                                       "**ODD  **layer 3  \n"
                                       "\n```\ndigraph {}\n```\n\n");
}

} // namespace
} // namespace plumb
