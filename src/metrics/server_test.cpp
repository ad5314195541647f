// SPDX-License-Identifier: Apache-2.0
// Against clients that mean no good. Nothing here measures time: what must happen is waited for, however long it takes.
#include "metrics/server.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <atomic>
#include <random>
#include <thread>

#include "metrics/scrape_testing.hpp"

namespace plumb::metrics {
namespace {

constexpr std::string_view request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr std::chrono::milliseconds for_ever = std::chrono::hours(1);

class Serving {
  public:
    explicit Serving(ServerLimits limits = {64, for_ever}, std::string text = "plumb_x 1\n")
        : server_(
              listen(), [text] { return text; }, limits),
          thread_([this] { server_.serve(); }) {}
    ~Serving() {
        server_.stop();
        thread_.join();
    }
    [[nodiscard]] std::uint16_t port() const { return endpoint_.port; }
    [[nodiscard]] bool serves() const { return scrape(port()).ends_with("plumb_x 1\n"); }
    Server& server() { return server_; }

  private:
    base::Socket listen() {
        Result<base::Socket> listener = base::listen_on(endpoint_);
        EXPECT_TRUE(listener.ok()) << listener.error().message;
        return listener.ok() ? *std::move(listener) : base::Socket();
    }
    base::Endpoint endpoint_;
    Server server_;
    std::thread thread_;
};

TEST(Server, answers_one_scrape_after_another) {
    const Serving serving;
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(serving.serves());
    }
}

TEST(Server, a_request_that_comes_byte_by_byte_is_answered) {
    const Serving serving;
    const Client client(serving.port());
    for (const char byte : request) {
        ASSERT_TRUE(client.say(std::string_view(&byte, 1)));
        ASSERT_TRUE(serving.serves()); // meanwhile
    }
    EXPECT_TRUE(client.hear().ends_with("plumb_x 1\n"));
}

TEST(Server, a_thousand_idle_connections_starve_nobody) {
    const Serving serving;
    std::vector<Client> idle;
    for (int i = 0; i < 1000; ++i) {
        idle.emplace_back(serving.port());
        ASSERT_TRUE(idle.back().connected());
        if (i % 10 == 0) {
            (void)idle.back().say("GET /met");
        }
        if (i % 100 == 0) {
            ASSERT_TRUE(serving.serves()) << i;
        }
    }
    EXPECT_TRUE(serving.serves());
    EXPECT_EQ(idle.front().hear(), ""); // made way for others
}

TEST(Server, a_client_that_takes_too_long_is_cut_off) {
    const Serving serving({64, std::chrono::milliseconds(20)});
    const Client silent(serving.port());
    const Client half(serving.port());
    (void)half.say("GET /metrics HTTP/1.1\r\n");
    EXPECT_EQ(silent.hear(), "");
    EXPECT_EQ(half.hear(), "");
    EXPECT_TRUE(serving.serves());
}

TEST(Server, a_client_that_does_not_read_holds_up_nobody) {
    const std::string large(32U << 20U, 'x'); // more than the system keeps for a connection
    Serving serving({64, for_ever}, large + "plumb_x 1\n");
    std::vector<Client> stuck;
    for (int i = 0; i < 3; ++i) {
        stuck.emplace_back(serving.port());
        ASSERT_TRUE(stuck.back().say(request));
    }
    EXPECT_TRUE(serving.serves());
}

TEST(Server, ten_thousand_hostile_requests_crash_nothing) {
    const Serving serving({16, for_ever});
    std::mt19937 random(11);
    for (int i = 0; i < 10'000; ++i) {
        const Client client(serving.port());
        ASSERT_TRUE(client.connected()) << i;
        std::string said(request);
        switch (i % 5) {
        case 0: // cut
            said.resize(random() % said.size());
            break;
        case 1: // endless
            said.insert(said.size() - 4, std::string(1 + random() % 20'000, 'x'));
            break;
        case 2: // another method
            said.replace(0, 3, "BREW");
            break;
        case 3: // noise
            for (char& c : said) {
                c = static_cast<char>(random());
            }
            break;
        default: // pipelined, and gone before the answer
            said += said;
        }
        (void)client.say(said);
        if (i % 500 == 0) {
            ASSERT_TRUE(serving.serves()) << i;
        }
    }
    EXPECT_TRUE(serving.serves());
}

TEST(Server, clients_from_many_threads_are_all_served) {
    const Serving serving({8, for_ever});
    std::atomic<int> served{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 100; ++i) {
                served += serving.serves() ? 1 : 0;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(served, 400);
}

TEST(Server, a_forked_child_keeps_neither_port_nor_connection) {
    std::uint16_t port = 0;
    int hold[2], closed[2];
    ASSERT_EQ(pipe(hold), 0);
    ASSERT_EQ(pipe(closed), 0);
    pid_t child = -1;
    {
        Serving serving;
        port = serving.port();
        const Client client(port);
        ASSERT_TRUE(serving.serves()); // by then the one before is accepted
        serving.server().before_fork();
        child = fork();
        if (child == 0) {
            serving.server().after_fork(true);
            char byte = 0;
            close(hold[1]);
            (void)!write(closed[1], &byte, 1);
            (void)!read(hold[0], &byte, 1); // until the parent has looked
            _exit(0);
        }
        serving.server().after_fork(false);
        char byte = 0;
        ASSERT_EQ(read(closed[0], &byte, 1), 1);
        EXPECT_TRUE(serving.serves());
        serving.server().stop();
        EXPECT_EQ(client.hear(), ""); // ends, though the child lives
    }
    base::Endpoint endpoint{"127.0.0.1", port};
    const Result<base::Socket> again = base::listen_on(endpoint);
    EXPECT_TRUE(again.ok()) << again.error().message;
    for (const int end : {hold[0], hold[1], closed[0], closed[1]}) {
        close(end);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

} // namespace
} // namespace plumb::metrics
