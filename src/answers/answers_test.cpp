// SPDX-License-Identifier: Apache-2.0
// What holds for every answer there is.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "answers/answer.hpp"
#include "support/json_schema.hpp"
#include "support/text_of_file.hpp"

namespace plumb {
namespace {

std::string file_of(const std::string& schema) {
    std::string file = schema;
    file.replace(file.find('/'), 1, ".");
    return std::string(PLUMB_TEST_SOURCE_DIR) + "/tests/schema/" + file + ".json";
}

/// Objects of one name are one object.
void collect(const page::Form& form, std::map<std::string, std::string>& named) {
    if (form.kind == page::Form::Kind::object && !form.name.empty()) {
        std::string fields;
        for (const page::FormField& field : form.fields) {
            fields += field.name + " ";
        }
        EXPECT_EQ(named.try_emplace(form.name, fields).first->second, fields) << form.name;
    }
    for (const page::FormField& field : form.fields) {
        collect(field.form, named);
    }
    for (const page::Form& item : form.items) {
        collect(item, named);
    }
}

TEST(Answers, the_committed_schemas_are_those_of_the_descriptions) {
    for (const answers::Document& document : answers::documents()) {
        EXPECT_EQ(*json_schema(document.schema), support::text_of_file(file_of(document.schema)))
            << "write it anew: plumb help --schema " << document.schema;
    }
}

TEST(Answers, an_object_has_one_name_and_a_name_one_object) {
    for (const answers::Document& document : answers::documents()) {
        std::map<std::string, std::string> named;
        collect(document.form(), named);
        EXPECT_FALSE(named.empty()) << document.schema;
    }
}

TEST(Answers, names_options_and_files_are_said_in_words) {
    std::set<std::string> names;
    for (const AnswerInfo& info : known_answers()) {
        EXPECT_TRUE(names.insert(info.name).second) << info.name;
        EXPECT_FALSE(info.summary.empty());
        for (const AnswerOption& option : info.options) {
            EXPECT_FALSE(option.meaning.empty()) << info.name << " " << option.name;
        }
    }
}

TEST(Answers, what_cannot_be_asked_is_refused_with_what_can) {
    EXPECT_NE(ask("waal", {"a.plumb"}).error().message.find("there are "), std::string::npos);
    EXPECT_NE(ask("layers", {"a.plumb"}, {{"metrik", "p50"}}).error().message.find("metric, phase"), std::string::npos);
    EXPECT_EQ(ask("layers", {}).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(ask("layers", {"a.plumb", "b.plumb"}).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(ask("timeline", {"a.plumb"}, {{"slowest", "2"}, {"step", "3"}}).error().message,
              "timeline takes step or slowest, not both");
    EXPECT_EQ(ask("layers", {"missing.plumb"}).error().code, ErrorCode::not_found);
    EXPECT_NE(json_schema("plumb.layers/9").error().message.find("plumb.layers/2"), std::string::npos);
}

} // namespace
} // namespace plumb
