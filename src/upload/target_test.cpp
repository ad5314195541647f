// SPDX-License-Identifier: Apache-2.0
#include "upload/target.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace plumb::upload {
namespace {

std::string shown(std::string_view url) {
    const Result<Target> target = parse_target(url);
    if (!target) {
        return target.error().message;
    }
    std::string text;
    for (const HttpServer& shard : target->shards) {
        text += text_of(shard) + ' ';
    }
    return text + target->database;
}

TEST(Target, an_address_is_a_list_of_shards_and_a_database) {
    EXPECT_EQ(shown("clickhouse://127.0.0.1:8123/plumb"), "127.0.0.1:8123 plumb");
    EXPECT_EQ(shown("clickhouse://ch-1.example.org,ch-2:9/a_B1"), "ch-1.example.org:8123 ch-2:9 a_B1");
    EXPECT_EQ(shown("clickhouse://[::1]:1,[fe80::1%eth0]/x"), "[::1]:1 [fe80::1%eth0]:8123 x");
}

TEST(Target, what_is_no_address_is_refused_with_an_example) {
    std::istringstream hosts(
        "a:8123 /plumb a:8123/ a:8123/x/y a:8123/1x a:8123/x;drop a:0/x a:65536/x a:/x a:81b/x a,/x ,a/x "
        "a,a:8123/x [::1/x [::1]9/x ::1:8123/x");
    std::vector<std::string> urls{"", "clickhouse:/a/b", "http://a:8123/plumb", "clickhouse://a b/x",
                                  "clickhouse://a/x y"};
    for (std::string host; hosts >> host;) {
        urls.push_back("clickhouse://" + host);
    }
    for (const std::string& url : urls) {
        const Result<Target> target = parse_target(url);
        ASSERT_FALSE(target.ok()) << url;
        EXPECT_EQ(target.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(target.error().message.find("say clickhouse://host:8123/plumb"), std::string::npos)
            << target.error().message;
    }
    EXPECT_NE(shown("clickhouse://me:secret@a/x").find("CLICKHOUSE_PASSWORD"), std::string::npos);
    EXPECT_EQ(shown("clickhouse://me:secret@a/x").find("secret"), std::string::npos);
}

TEST(Target, a_rank_goes_where_a_distributed_table_looks_for_it) {
    const Result<Target> target = parse_target("clickhouse://a,b,c/x");
    ASSERT_TRUE(target.ok());
    EXPECT_EQ(target->shard_of(0).host, "a");
    EXPECT_EQ(target->shard_of(5).host, "c");
    EXPECT_EQ(target->shard_of(std::nullopt).host, "a");
    EXPECT_EQ(target->shard_of(-1).host, "a"); // 2^64 - 1 is a multiple of 3
}

} // namespace
} // namespace plumb::upload
