// SPDX-License-Identifier: Apache-2.0
// Without an analysis library: this test links none.
#include "asking/analysis_table.hpp"

#include <gtest/gtest.h>

namespace plumb {
namespace {

TEST(AnalysisTable, without_the_library_each_question_says_what_to_do) {
    const Result<Answer> answer = ask("report", {"run.plumb"});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_NE(answer.error().message.find("; link plumb::analysis"), std::string::npos) << answer.error().message;
    for (const Error& error : {report_recording("run.plumb").error(), json_schema("plumb.report/2").error()}) {
        EXPECT_EQ(error.code, ErrorCode::unavailable);
        EXPECT_EQ(error.message, answer.error().message);
    }
    EXPECT_TRUE(known_answers().empty());
    EXPECT_TRUE(json_reference().empty());
    EXPECT_EQ(render_text(Report{}), answer.error().message + '\n');
}

TEST(AnalysisTable, one_of_another_version_is_not_used) {
    asking::AnalysisTable table{};
    table.version = PLUMB_BUILD_VERSION;
    ASSERT_TRUE(asking::same_version(table).ok());
    EXPECT_EQ(*asking::same_version(table), &table);
    table.version = "0.0.9";
    const Result<asking::AnalysisPointer> other = asking::same_version(table);
    ASSERT_FALSE(other.ok());
    EXPECT_EQ(other.error().code, ErrorCode::unavailable);
    EXPECT_EQ(other.error().message, "libplumb is of version " PLUMB_BUILD_VERSION
                                     ", libplumb-analysis of version 0.0.9; install both from one build");
}

} // namespace
} // namespace plumb
