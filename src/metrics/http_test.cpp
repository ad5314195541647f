// SPDX-License-Identifier: Apache-2.0
#include "metrics/http.hpp"

#include <gtest/gtest.h>

#include <random>

namespace plumb::metrics {
namespace {

std::string answer(std::string_view request) {
    return answer_to(request, [] { return std::string("plumb_x 1\n"); });
}
std::string status(std::string_view request) {
    const std::string all = answer(request);
    return all.substr(0, all.find('\r'));
}

TEST(Http, a_scrape_is_answered_in_the_format_of_prometheus) {
    const std::string all = answer("GET /metrics HTTP/1.1\r\nHost: localhost:9464\r\nAccept: text/plain\r\n\r\n");
    EXPECT_EQ(all, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 10\r\n"
                   "Connection: close\r\n\r\nplumb_x 1\n");
    EXPECT_EQ(answer("HEAD /metrics HTTP/1.0\r\n\r\n"), all.substr(0, all.size() - 10));
    EXPECT_EQ(status("GET /metrics?module=a HTTP/1.1\n\n"), "HTTP/1.1 200 OK");
}

TEST(Http, a_request_that_is_not_complete_waits_for_the_rest) {
    const std::string whole = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    for (std::size_t size = 0; size < whole.size(); ++size) {
        EXPECT_EQ(answer(whole.substr(0, size)), "") << size;
    }
}

TEST(Http, what_is_no_scrape_gets_its_status) {
    EXPECT_EQ(status("POST /metrics HTTP/1.1\r\n\r\n"), "HTTP/1.1 405 Method Not Allowed");
    EXPECT_NE(answer("DELETE /metrics HTTP/1.1\r\n\r\n").find("\r\nAllow: GET, HEAD\r\n"), std::string::npos);
    for (const char* elsewhere : {"GET / HTTP/1.1\r\n\r\n", "GET /metrics/ HTTP/1.1\r\n\r\n",
                                  "GET /../metrics HTTP/1.1\r\n\r\n", "GET /etc/passwd HTTP/1.1\r\n\r\n"}) {
        EXPECT_EQ(status(elsewhere), "HTTP/1.1 404 Not Found") << elsewhere;
    }
    for (const char* broken :
         {"\r\n\r\n", "\n\n", "GET\r\n\r\n", "GET /metrics\r\n\r\n", "GET /metrics FTP/1.1\r\n\r\n",
          "get /metrics HTTP/1.1\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n", "GET  /metrics HTTP/1.1\r\n\r\n",
          "PRI * HTTP/2.0\r\n\r\n", "\x16\x03\x01\x02 / HTTP/1.1\r\n\r\n"}) {
        EXPECT_EQ(status(broken), "HTTP/1.1 400 Bad Request") << broken;
    }
}

TEST(Http, a_request_without_an_end_is_refused_once_it_is_too_long) {
    std::string endless = "GET /metrics HTTP/1.1\r\nX: ";
    endless.resize(longest_request - 1, 'x');
    EXPECT_EQ(answer(endless), "");
    EXPECT_EQ(status(endless + "x"), "HTTP/1.1 431 Request Header Fields Too Large");
    EXPECT_EQ(status(endless + "xx\r\n\r\n"), "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST(Http, ten_thousand_mutants_are_refused_or_answered) {
    std::mt19937 random(7);
    const std::string whole = "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
    std::map<std::string, int> seen;
    for (int i = 0; i < 10'000; ++i) {
        std::string mutant = whole;
        for (unsigned change = 0; change <= random() % 4; ++change) {
            const std::size_t at = random() % mutant.size();
            switch (random() % 3) {
            case 0:
                mutant[at] = static_cast<char>(random());
                break;
            case 1:
                mutant.erase(at, random() % 5);
                break;
            default:
                mutant.insert(at, std::string(random() % 5, static_cast<char>(random())));
            }
            mutant += mutant.empty() ? "x" : "";
        }
        ++seen[status(mutant)];
    }
    EXPECT_GT(seen["HTTP/1.1 200 OK"], 0);
    EXPECT_GT(seen["HTTP/1.1 400 Bad Request"], 0);
    EXPECT_GT(seen["HTTP/1.1 404 Not Found"], 0);
    EXPECT_GT(seen[""], 0);
}

} // namespace
} // namespace plumb::metrics
