// SPDX-License-Identifier: Apache-2.0
#include "upload/http.hpp"

#include <gtest/gtest.h>

#include "upload/stand_in_testing.hpp"

namespace plumb::upload {
namespace {

using State = HttpReader::State;

Result<HttpAnswer> asked(const std::string& bytes, HttpLimits limits = {}, bool hold = false) {
    const StandIn server([&](const Heard&) { return Reaction{bytes, hold}; });
    return post(server.server(), {}, limits, never);
}

/// The same whether bytes come at once or one by one.
State read(std::string_view bytes, std::string* body = nullptr, bool then_ends = false) {
    State states[2] = {State::more, State::more};
    for (const bool slowly : {false, true}) {
        const std::size_t piece = slowly ? 1 : bytes.size();
        HttpReader reader(1000);
        State& state = states[slowly ? 1 : 0];
        for (std::size_t at = 0; at < bytes.size() && state == State::more; at += piece) {
            state = reader.add(bytes.substr(at, piece));
        }
        if (then_ends && state == State::more) {
            state = reader.end();
        }
        if (body != nullptr) {
            *body = reader.take().body;
        }
    }
    EXPECT_EQ(states[0], states[1]) << bytes;
    return states[0];
}

TEST(Http, an_answer_comes_by_length_in_chunks_or_until_the_end) {
    std::string body;
    EXPECT_EQ(read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", &body), State::complete);
    EXPECT_EQ(body, "abc");
    EXPECT_EQ(
        read("HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", &body),
        State::complete);
    EXPECT_EQ(body, "abc0123456789");
    EXPECT_EQ(read("HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\nabc", &body, true), State::complete);
    EXPECT_EQ(body, "abc");
    EXPECT_EQ(read("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length:0\r\n\r\n", &body), State::complete);
    EXPECT_EQ(read("HTTP/1.1 204 No Content\r\n\r\n", &body), State::complete);
    EXPECT_EQ(body, "");
}

TEST(Http, an_answer_that_is_cut_is_none) {
    for (const std::string whole : {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"}) {
        for (std::size_t cut = 0; cut < whole.size(); ++cut) {
            EXPECT_EQ(read(std::string_view(whole).substr(0, cut), nullptr, true), State::broken)
                << whole.substr(0, cut);
        }
        EXPECT_EQ(read(whole), State::complete);
    }
}

TEST(Http, an_answer_that_is_no_http_or_too_long_is_refused) {
    for (const std::string& bytes :
         {std::string("SSH-2.0-OpenSSH\r\n\r\n"), std::string("HTTP/2 200\r\n\r\n"),
          std::string("HTTP/1.1 20x\r\n\r\n"), std::string("HTTP/1.1 2000 OK\r\n\r\n"),
          std::string("HTTP/1.1 999 OK\r\n\r\n"), std::string("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n"),
          std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
          "HTTP/1.1 200 OK\r\n" + std::string(1000, 'x'), std::string(1001, '\0')}) {
        EXPECT_EQ(read(bytes), State::broken) << bytes.substr(0, 80);
    }
}

TEST(Http, a_request_goes_out_whole_with_what_it_has_to_say) {
    Heard heard;
    const std::string body(std::size_t{3} << 20, 'x'); // more than a socket holds
    const StandIn server([&](const Heard& request) {
        heard = request;
        return Reaction{answer_of("yes")};
    });
    HttpRequest request{"/?query=" + url_encoded("select 'a b', 1 + 1\n"), {{"X-Word", "value"}}, body};
    const Result<HttpAnswer> answer = post(server.server(), request, {}, never);
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->body, "yes");
    EXPECT_EQ(heard.target, "/?query=select%20%27a%20b%27%2C%201%20%2B%201%0A");
    EXPECT_NE(heard.head.find("\r\nX-Word: value\r\n"), std::string::npos);
    EXPECT_NE(heard.head.find("\r\nHost: " + text_of(server.server()) + "\r\n"), std::string::npos);
    EXPECT_TRUE(heard.body == body);
}

TEST(Http, any_status_is_an_answer) {
    const Result<HttpAnswer> answer = asked(answer_of("Code: 60", "404 Not Found"));
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->status, 404);
}

TEST(Http, a_server_that_closes_or_says_something_else_is_named) {
    for (const char* bytes : {"", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "\x15\x03\x03"}) {
        const Result<HttpAnswer> answer = asked(bytes);
        ASSERT_FALSE(answer.ok());
        EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
        EXPECT_NE(answer.error().message.find("gave no whole answer"), std::string::npos) << answer.error().message;
    }
}

TEST(Http, a_slow_server_and_an_endless_answer_have_an_end) {
    HttpLimits limits;
    limits.to_answer = std::chrono::milliseconds(1000);
    const Result<HttpAnswer> silent = asked("", limits, true);
    ASSERT_FALSE(silent.ok());
    EXPECT_NE(silent.error().message.find("did not answer within 1 s"), std::string::npos) << silent.error().message;
    const Result<HttpAnswer> half = asked("HTTP/1.1 200 OK\r\nContent-Le", limits, true);
    ASSERT_FALSE(half.ok());
    EXPECT_EQ(half.error().message.substr(half.error().message.find(' ')),
              silent.error().message.substr(silent.error().message.find(' ')));
    limits = {};
    limits.bytes = 1000;
    EXPECT_FALSE(asked("HTTP/1.1 200 OK\r\n\r\n" + std::string(100'000, 'x'), limits, true).ok());
}

TEST(Http, a_request_stops_when_it_is_told_to) {
    std::atomic<bool> stop{false};
    const StandIn server([&](const Heard&) {
        stop.store(true);
        return Reaction{"", true};
    });
    const Result<HttpAnswer> answer = post(server.server(), {}, {}, stop);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().message, "interrupted");
}

} // namespace
} // namespace plumb::upload
