// SPDX-License-Identifier: Apache-2.0
// For tests: a server on loopback that says what it is told to. It reads whole requests, one connection after the other. Owned by a
// test; handlers run on its thread.
#pragma once

#include <atomic>
#include <charconv>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/os_sockets.hpp"
#include "upload/http.hpp"

namespace plumb::upload {

inline const std::atomic<bool> never{false}; // interrupted

struct Heard {
    std::string target;
    std::string head;
    std::string body;
};

struct Reaction {
    std::string bytes;
    bool hold = false; // the connection stays open until the client goes
};

class StandIn {
  public:
    using Handler = std::function<Reaction(const Heard&)>;
    static constexpr std::chrono::seconds patience{60}; // a busy machine takes long

    explicit StandIn(Handler handler) : handler_(std::move(handler)) {
        Result<base::Socket> listener = base::listen_on(endpoint_);
        EXPECT_TRUE(listener.ok()) << listener.error().message;
        listener_ = std::move(*listener);
        thread_ = std::thread([this] { serve(); });
    }
    StandIn(const StandIn&) = delete;
    StandIn& operator=(const StandIn&) = delete;
    ~StandIn() {
        bell_.ring();
        thread_.join();
    }
    [[nodiscard]] HttpServer server() const { return {endpoint_.address, endpoint_.port}; }

  private:
    void serve() {
        for (;;) {
            std::vector<base::Awaited> awaited{{&listener_}, {&bell_.heard()}};
            base::wait(awaited, patience);
            if (awaited[1].ready) {
                return;
            }
            if (const base::Socket client = base::accept_from(listener_); client.open()) {
                answer(client);
            }
        }
    }
    void answer(const base::Socket& client) {
        Heard heard;
        if (!hear(client, heard)) {
            return;
        }
        const Reaction reaction = handler_(heard);
        for (std::string_view left = reaction.bytes; !left.empty();) {
            std::vector<base::Awaited> awaited{{&client, true}};
            base::wait(awaited, patience);
            const base::Transferred sent = base::send_some(client, left.data(), left.size());
            if (sent.how == base::Transfer::ended) {
                return;
            }
            left.remove_prefix(sent.bytes);
        }
        if (reaction.hold) {
            std::string more;
            while (receive(client, more)) {
            }
        }
    }
    /// False: the client is gone, or the test ends.
    bool receive(const base::Socket& client, std::string& to) {
        std::vector<base::Awaited> awaited{{&client}, {&bell_.heard()}};
        base::wait(awaited, patience);
        char bytes[65536];
        const base::Transferred got = base::receive_some(client, bytes, sizeof bytes);
        to.append(bytes, got.bytes);
        return got.how != base::Transfer::ended && !awaited[1].ready;
    }
    bool hear(const base::Socket& client, Heard& heard) {
        std::string all;
        std::size_t end = 0;
        while ((end = all.find("\r\n\r\n")) == std::string::npos) {
            if (!receive(client, all)) {
                return false;
            }
        }
        heard.head = all.substr(0, end + 2);
        const std::size_t target = heard.head.find(' ') + 1;
        heard.target = heard.head.substr(target, heard.head.find(' ', target) - target);
        const std::string_view length = std::string_view(heard.head).substr(heard.head.find("Content-Length: ") + 16);
        std::size_t size = 0;
        std::from_chars(length.data(), length.data() + length.size(), size);
        while (all.size() < end + 4 + size) {
            if (!receive(client, all)) {
                return false;
            }
        }
        heard.body = all.substr(end + 4);
        return true;
    }

    Handler handler_;
    base::Endpoint endpoint_;
    base::Socket listener_;
    base::Bell bell_;
    std::thread thread_;
};

inline std::string answer_of(std::string_view body, std::string_view status = "200 OK") {
    return "HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           std::string(body);
}

} // namespace plumb::upload
