// SPDX-License-Identifier: Apache-2.0
// Answers scrapes on one thread. Everything a client can hold is bounded: so many connections, of which the one that has kept
// the server waiting longest makes way for a new one, so many bytes, so many seconds.
// Owned by an Exporter. Thread rule: serve() on a thread of its own; stop() from another; before_fork() and after_fork() around a fork.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/os_sockets.hpp"

namespace plumb::metrics {

struct ServerLimits {
    std::size_t connections = 64;
    std::chrono::milliseconds patience{2000}; // from the first byte that could be sent to the last that was
};

class Server {
  public:
    /// `metrics` gives the text of one scrape.
    Server(base::Socket listener, std::function<std::string()> metrics, ServerLimits limits = {});
    /// Until stop().
    void serve();
    void stop() noexcept;
    void before_fork() noexcept { mutex_.lock(); }
    /// A child closes all that is the parent's, and never touches this again.
    void after_fork(bool in_child) noexcept;

  private:
    using Clock = std::chrono::steady_clock;
    struct Connection {
        base::Socket socket;
        Clock::time_point until; // then it is cut off
        std::string received;
        std::string answer; // empty: the request is not complete
        std::size_t sent = 0;
    };

    [[nodiscard]] std::chrono::milliseconds longest_wait(Clock::time_point now) const;
    void accept_new(Clock::time_point now);
    /// False: it ended.
    [[nodiscard]] bool go_on(Connection& connection);

    const std::function<std::string()> metrics_;
    const ServerLimits limits_;
    base::Bell bell_;
    bool refused_ = false; // by the system, which has no descriptor left

    std::mutex mutex_; // guards which descriptors there are, for forks; the serving thread alone changes them
    bool stopping_ = false;
    base::Socket listener_;
    std::vector<Connection> connections_; // the oldest first
};

} // namespace plumb::metrics
