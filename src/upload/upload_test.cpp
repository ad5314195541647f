// SPDX-License-Identifier: Apache-2.0
#include "upload/upload.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "export/planted_source_testing.hpp"
#include "upload/stand_in_testing.hpp"

namespace plumb::upload {
namespace {

exporting::PlantedSource some_rows() {
    exporting::PlantedSource source;
    source.run.rank = "3";
    source.run.recording_id[1] = 0xab;
    source.add_steps(2, 3);
    return source;
}

Result<Uploaded> sent_to(const StandIn& server, const exporting::PlantedSource& source) {
    UploadProgress progress;
    return upload_samples(source, {{server.server()}, "plumb"}, never, progress);
}

/// The words of a statement, wherever they stand.
bool asks(const Heard& heard, std::string_view words) {
    return heard.body.find(words) != std::string::npos || heard.target.find(url_encoded(words)) != std::string::npos;
}

TEST(Upload, what_a_table_does_not_have_is_not_committed) {
    bool committed = false, sent = false;
    const StandIn server([&](const Heard& heard) {
        sent = sent || asks(heard, "insert into scopes_local");
        committed = committed || asks(heard, "insert into plumb_uploads_local");
        return Reaction{answer_of(asks(heard, "select count()") ? "17\t1" : "")};
    });
    const Result<Uploaded> done = sent_to(server, some_rows());
    ASSERT_FALSE(done.ok());
    EXPECT_NE(
        done.error().message.find("has other rows in scopes_local than were sent (count and sums: 17,1 instead of "),
        std::string::npos)
        << done.error().message;
    EXPECT_EQ(done.error().message.find('\t'), std::string::npos);
    EXPECT_TRUE(sent);
    EXPECT_FALSE(committed);
}

TEST(Upload, an_earlier_attempt_is_dropped_first_by_its_recording_and_rank) {
    std::vector<std::string> asked;
    const StandIn server([&](const Heard& heard) {
        asked.push_back(heard.body);
        return Reaction{asked.size() == 4 ? answer_of("Code: 999, no", "500 Internal Server Error") : answer_of("")};
    });
    EXPECT_FALSE(sent_to(server, some_rows()).ok());
    ASSERT_EQ(asked.size(), 4U);
    for (std::size_t at = 0; const char* table : {"plumb_uploads_local", "scopes_local", "steps_local"}) {
        EXPECT_EQ(asked[at++],
                  std::string("alter table ") + table + " drop partition ('000000000000000000000000000000ab', 3)");
    }
}

TEST(Upload, what_a_server_refuses_is_one_sentence_that_says_what_to_do) {
    for (const auto& [said, part] :
         {std::pair("Code: 60, e.displayText() = no table\nstack", "share/plumb/clickhouse/tables.sql"),
          std::pair("Code: 81. DB::Exception: no database", "share/plumb/clickhouse/tables.sql"),
          std::pair("Code: 516. DB::Exception: who?", "set CLICKHOUSE_USER"),
          std::pair("Code: 241, memory\x1b[0m\nstack", "refuses (HTTP 500): Code: 241, memory [0m")}) {
        const StandIn server(
            [said = said](const Heard&) { return Reaction{answer_of(said, "500 Internal Server Error")}; });
        const Result<Uploaded> done = sent_to(server, some_rows());
        ASSERT_FALSE(done.ok());
        EXPECT_NE(done.error().message.find(part), std::string::npos) << done.error().message;
        EXPECT_EQ(done.error().message.find('\n'), std::string::npos) << done.error().message;
    }
}

TEST(Upload, a_redirect_says_where_it_leads) {
    const StandIn server([](const Heard&) {
        return Reaction{
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://other:8123/x\r\nContent-Length: 0\r\n\r\n"};
    });
    const Result<Uploaded> done = sent_to(server, some_rows());
    ASSERT_FALSE(done.ok());
    EXPECT_NE(done.error().message.find(" sends on to http://other:8123/x (HTTP 307); name the server"),
              std::string::npos)
        << done.error().message;
}

TEST(Upload, a_password_with_a_line_end_is_refused_before_anything_is_sent) {
    std::atomic<int> asked = 0;
    const StandIn server([&](const Heard&) {
        ++asked;
        return Reaction{answer_of("")};
    });
    ::setenv("CLICKHOUSE_PASSWORD", "secret\r", 1);
    const Result<Uploaded> done = sent_to(server, some_rows());
    ::unsetenv("CLICKHOUSE_PASSWORD");
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().message, "CLICKHOUSE_PASSWORD holds a line end, which cannot be sent; set it without");
    EXPECT_EQ(asked, 0);
}

} // namespace
} // namespace plumb::upload
