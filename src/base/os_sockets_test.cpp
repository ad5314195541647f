// SPDX-License-Identifier: Apache-2.0
#include "base/os_sockets.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace plumb::base {
namespace {

TEST(Sockets, an_address_is_loopback_unless_it_says_otherwise) {
    for (const auto& [text, said] :
         std::vector<std::pair<const char*, const char*>>{{"9464", "127.0.0.1:9464"},
                                                          {":9464", "127.0.0.1:9464"},
                                                          {"localhost:9464", "127.0.0.1:9464"},
                                                          {"0.0.0.0:1", "0.0.0.0:1"},
                                                          {"192.0.2.7:65535", "192.0.2.7:65535"},
                                                          {"[::1]:9464", "[::1]:9464"},
                                                          {"[::]:0", "[::]:0"}}) {
        const Result<Endpoint> parsed = parse_endpoint(text);
        ASSERT_TRUE(parsed.ok()) << text;
        EXPECT_EQ(text_of(*parsed), said);
    }
}

TEST(Sockets, what_is_no_address_is_refused_with_an_example) {
    for (const char* text : {"", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:94 64",
                             "::1:9464", "[::1]", "[]:1", "example.org:9464", "127.0.0:1", "1.2.3.4.5:1"}) {
        const Result<Endpoint> parsed = parse_endpoint(text);
        ASSERT_FALSE(parsed.ok()) << text;
        EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
        EXPECT_NE(parsed.error().message.find("say 127.0.0.1:9464"), std::string::npos) << parsed.error().message;
    }
}

TEST(Sockets, a_port_beyond_16_bits_is_refused_with_those_there_are) {
    for (const char* text : {"99999", "127.0.0.1:65536", "[::1]:99999999999999999999"}) {
        const Result<Endpoint> parsed = parse_endpoint(text);
        ASSERT_FALSE(parsed.ok()) << text;
        EXPECT_NE(parsed.error().message.find("ports are 1 to 65535"), std::string::npos) << parsed.error().message;
    }
}

TEST(Sockets, a_port_that_is_taken_is_refused_and_free_again_afterwards) {
    Endpoint endpoint;
    Result<Socket> first = listen_on(endpoint);
    ASSERT_TRUE(first.ok()) << first.error().message;
    ASSERT_NE(endpoint.port, 0);
    EXPECT_NE(fcntl(first->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
    const Result<Socket> second = listen_on(endpoint);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ErrorCode::already_exists);
    EXPECT_EQ(second.error().message, text_of(endpoint) + " is taken by another process; choose another port");
    first->close();
    EXPECT_TRUE(listen_on(endpoint).ok());
}

TEST(Sockets, an_address_of_another_machine_is_refused) {
    Endpoint endpoint{"192.0.2.1", 0}; // for documentation: nobody has it
    const Result<Socket> socket = listen_on(endpoint);
    ASSERT_FALSE(socket.ok());
    EXPECT_EQ(socket.error().code, ErrorCode::unavailable);
}

TEST(Sockets, a_client_reaches_a_server_and_says_where_there_is_none) {
    Endpoint endpoint;
    Result<Socket> listener = listen_on(endpoint);
    ASSERT_TRUE(listener.ok()) << listener.error().message;
    constexpr std::chrono::seconds patience{60};
    const Result<Socket> client = connect_to("localhost", endpoint.port, patience);
    ASSERT_TRUE(client.ok()) << client.error().message;
    EXPECT_NE(fcntl(client->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
    std::vector<Awaited> awaited{{&*listener}};
    wait(awaited, patience);
    EXPECT_TRUE(accept_from(*listener).open());
    listener->close();
    const Result<Socket> refused = connect_to("127.0.0.1", endpoint.port, patience);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_EQ(refused.error().message,
              text_of(endpoint) + " does not answer (Connection refused); is a server listening there?");
    const Result<Socket> unknown = connect_to("no-such-host.invalid", 1, patience);
    ASSERT_FALSE(unknown.ok());
    EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
}

} // namespace
} // namespace plumb::base
