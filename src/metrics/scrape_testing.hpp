// SPDX-License-Identifier: Apache-2.0
// For tests: a client of a server of metrics, and what it was told. One thread.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace plumb::metrics {

/// A connection to 127.0.0.1 that waits.
class Client {
  public:
    explicit Client(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    }
    Client(Client&& other) noexcept
        : socket_(std::exchange(other.socket_, -1)), connected_(std::exchange(other.connected_, false)) {}
    ~Client() {
        if (socket_ >= 0) {
            close(socket_);
        }
    }
    [[nodiscard]] bool connected() const { return connected_; }
    [[nodiscard]] int descriptor() const { return socket_; }
    /// False: the server ended the connection.
    bool say(std::string_view text) const {
        while (!text.empty()) {
            const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent <= 0) {
                return false;
            }
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
        return true;
    }
    /// All until the server ends the connection.
    [[nodiscard]] std::string hear() const {
        std::string all;
        char bytes[4096];
        for (ssize_t got = 0; (got = recv(socket_, bytes, sizeof bytes, 0)) > 0;) {
            all.append(bytes, static_cast<std::size_t>(got));
        }
        return all;
    }

  private:
    int socket_;
    bool connected_ = false;
};

/// What one scrape gets, with its head; empty: nobody answers.
inline std::string scrape(std::uint16_t port, std::string_view request = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n") {
    const Client client(port);
    return client.connected() && client.say(request) ? client.hear() : std::string();
}

/// Values by name and labels, as they stand in the text; comments and head left out.
inline std::map<std::string, double> series_of(std::string_view text) {
    std::map<std::string, double> all;
    while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        const std::size_t blank = line.rfind(' ');
        if (line.starts_with("plumb_") && blank != std::string_view::npos) {
            all[std::string(line.substr(0, blank))] = std::strtod(std::string(line.substr(blank + 1)).c_str(), nullptr);
        }
    }
    return all;
}

} // namespace plumb::metrics
