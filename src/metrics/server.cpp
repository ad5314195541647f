// SPDX-License-Identifier: Apache-2.0
#include "metrics/server.hpp"

#include <algorithm>
#include <utility>

#include "metrics/http.hpp"

namespace plumb::metrics {
namespace {

using namespace std::chrono_literals;

constexpr auto pause_when_refused = 100ms;
constexpr std::size_t most_accepted_at_once = 256; // then those that are connected have their turn

} // namespace

Server::Server(base::Socket listener, std::function<std::string()> metrics, ServerLimits limits)
    : metrics_(std::move(metrics)), limits_(limits), listener_(std::move(listener)) {
    connections_.reserve(limits_.connections);
}

void Server::stop() noexcept {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    bell_.ring();
}

void Server::after_fork(bool in_child) noexcept {
    if (in_child) {
        bell_.close();
        listener_.close();
        for (Connection& connection : connections_) {
            connection.socket.close();
        }
    }
    mutex_.unlock();
}

void Server::serve() {
    std::vector<base::Awaited> awaited;
    for (;;) {
        awaited.assign({{&bell_.heard()}, {refused_ ? &bell_.heard() : &listener_}});
        for (const Connection& connection : connections_) {
            awaited.push_back({&connection.socket, !connection.answer.empty()});
        }
        base::wait(awaited, longest_wait(Clock::now()));
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (stopping_) {
                listener_.close();
                connections_.clear();
                return;
            }
        }
        if (awaited[0].ready) {
            bell_.silence();
        }
        const Clock::time_point now = Clock::now();
        std::vector<bool> over(connections_.size());
        for (std::size_t i = 0; i < connections_.size(); ++i) {
            over[i] = (awaited[i + 2].ready && !go_on(connections_[i])) || now >= connections_[i].until;
        }
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            for (std::size_t i = over.size(); i-- > 0;) {
                if (over[i]) {
                    connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
                }
            }
        }
        if (std::exchange(refused_, false) || awaited[1].ready) {
            accept_new(now);
        }
    }
}

std::chrono::milliseconds Server::longest_wait(Clock::time_point now) const {
    std::chrono::milliseconds longest = refused_ ? std::chrono::milliseconds(pause_when_refused) : 1h;
    for (const Connection& connection : connections_) {
        longest = std::min(longest, std::chrono::ceil<std::chrono::milliseconds>(connection.until - now));
    }
    return longest;
}

void Server::accept_new(Clock::time_point now) {
    for (std::size_t i = 0; i < most_accepted_at_once; ++i) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            base::Socket socket = base::accept_from(listener_);
            if (!socket.open()) {
                refused_ = i == 0; // ready, and yet nothing came: looked at again, but not at once
                return;
            }
            if (connections_.size() >= limits_.connections) {
                const auto idle = std::find_if(connections_.begin(), connections_.end(),
                                               [](const Connection& c) { return c.answer.empty(); });
                connections_.erase(idle != connections_.end() ? idle : connections_.begin());
            }
            connections_.push_back({std::move(socket), now + limits_.patience, {}, {}, 0});
        }
        // A request that is there already is answered before later connections push it out.
        if (!go_on(connections_.back())) {
            const std::lock_guard<std::mutex> lock(mutex_);
            connections_.pop_back();
        }
    }
}

bool Server::go_on(Connection& connection) {
    while (connection.answer.empty()) {
        char bytes[4096];
        const base::Transferred got = base::receive_some(connection.socket, bytes, sizeof bytes);
        if (got.how != base::Transfer::some) {
            return got.how == base::Transfer::later;
        }
        connection.received.append(bytes, got.bytes);
        connection.answer = answer_to(connection.received, metrics_);
    }
    while (connection.sent < connection.answer.size()) {
        const base::Transferred went = base::send_some(connection.socket, connection.answer.data() + connection.sent,
                                                       connection.answer.size() - connection.sent);
        if (went.how != base::Transfer::some) {
            return went.how == base::Transfer::later;
        }
        connection.sent += went.bytes;
    }
    base::end_sending(connection.socket);
    return false;
}

} // namespace plumb::metrics
