// SPDX-License-Identifier: Apache-2.0
#include "base/os_sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace plumb::base {
namespace {

// Linux makes a descriptor that never waits and is not inherited by other programs in one call, between which no thread can start one.
#if defined(__linux__)
constexpr int quietly = MSG_NOSIGNAL;
constexpr int prepared = SOCK_NONBLOCK | SOCK_CLOEXEC;
int accept_prepared(int listener) noexcept { return accept4(listener, nullptr, nullptr, prepared); }
int pipe_prepared(int (&ends)[2]) noexcept { return pipe2(ends, O_NONBLOCK | O_CLOEXEC); }
void prepare(int) noexcept {}
#else
constexpr int quietly = 0;
constexpr int prepared = 0;
int accept_prepared(int listener) noexcept { return accept(listener, nullptr, nullptr); }
int pipe_prepared(int (&ends)[2]) noexcept { return pipe(ends); }
void prepare(int descriptor) noexcept {
#if defined(SO_NOSIGPIPE)
    const int on = 1;
    (void)setsockopt(descriptor, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    (void)fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC);
}
#endif

union Address {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
};

/// Its length; 0: no such address.
socklen_t address_of(const Endpoint& endpoint, Address& to) {
    to = {};
    if (inet_pton(AF_INET, endpoint.address.c_str(), &to.v4.sin_addr) == 1) {
        to.v4.sin_family = AF_INET;
        to.v4.sin_port = htons(endpoint.port);
        return sizeof to.v4;
    }
    if (inet_pton(AF_INET6, endpoint.address.c_str(), &to.v6.sin6_addr) == 1) {
        to.v6.sin6_family = AF_INET6;
        to.v6.sin6_port = htons(endpoint.port);
        return sizeof to.v6;
    }
    return 0;
}

Error refused(const Endpoint& endpoint, int reason) {
    const std::string where = text_of(endpoint);
    switch (reason) {
    case EADDRINUSE:
        return {ErrorCode::already_exists, where + " is taken by another process; choose another port"};
    case EACCES:
    case EPERM:
        return {ErrorCode::permission, where + " may not be listened on; choose a port above 1023"};
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
        return {ErrorCode::unavailable, where + " is no address of this machine; choose 127.0.0.1, or one of its own"};
    default:
        return {ErrorCode::failed, where + " cannot be listened on (" + std::strerror(reason) + ")"};
    }
}

/// 0, or why it is not connected.
int connect_within(const Socket& socket, const addrinfo& to, std::chrono::milliseconds longest) {
    if (connect(socket.descriptor(), to.ai_addr, to.ai_addrlen) == 0) {
        return 0;
    }
    if (errno != EINPROGRESS) {
        return errno;
    }
    std::vector<Awaited> awaited{{&socket, true}};
    wait(awaited, longest);
    int reason = 0;
    socklen_t size = sizeof reason;
    return !awaited[0].ready                                                            ? ETIMEDOUT
           : getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &reason, &size) != 0 ? errno
                                                                                        : reason;
}

Transferred outcome_of(ssize_t moved) noexcept {
    if (moved > 0) {
        return {Transfer::some, static_cast<std::size_t>(moved)};
    }
    const bool waits = moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    return {waits ? Transfer::later : Transfer::ended, 0};
}

} // namespace

Socket::Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

Socket& Socket::operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
}

void Socket::close() noexcept {
    if (descriptor_ >= 0) {
        ::close(std::exchange(descriptor_, -1));
    }
}

Result<Endpoint> parse_endpoint(std::string_view text) {
    const Error misfit{ErrorCode::invalid_argument,
                       "\"" + std::string(text) + "\" is no address with a port; say 127.0.0.1:9464, or [::1]:9464"};
    Endpoint endpoint;
    const std::size_t colon = text.rfind(':');
    const std::string_view port = text.substr(colon + 1); // all of it where there is none
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (failed == std::errc::result_out_of_range && end == port.data() + port.size()) {
        return Error{ErrorCode::invalid_argument,
                     "\"" + std::string(text) + "\" has no such port: ports are 1 to 65535; say 127.0.0.1:9464"};
    }
    if (failed != std::errc{} || end != port.data() + port.size()) {
        return misfit;
    }
    std::string_view address = colon == std::string_view::npos ? std::string_view() : text.substr(0, colon);
    if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
        address = address.substr(1, address.size() - 2);
    } else if (address.find(':') != std::string_view::npos) {
        return misfit;
    }
    if (!address.empty() && address != "localhost") {
        endpoint.address = address;
    }
    Address parsed;
    return address_of(endpoint, parsed) != 0 ? Result<Endpoint>(endpoint) : misfit;
}

std::string text_of(const Endpoint& endpoint) {
    const bool v6 = endpoint.address.find(':') != std::string::npos;
    return (v6 ? "[" + endpoint.address + "]" : endpoint.address) + ":" + std::to_string(endpoint.port);
}

Result<Socket> listen_on(Endpoint& endpoint) {
    Address address;
    const socklen_t size = address_of(endpoint, address);
    Socket socket(size != 0 ? ::socket(address.any.sa_family, SOCK_STREAM | prepared, 0) : -1);
    if (!socket.open()) {
        return refused(endpoint, size != 0 ? errno : EADDRNOTAVAIL);
    }
    prepare(socket.descriptor());
    const int on = 1; // a port whose last connections still fade is free
    (void)setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    constexpr int most_waiting = 1024; // beyond it a client asks again only a second later
    if (bind(socket.descriptor(), &address.any, size) != 0 || listen(socket.descriptor(), most_waiting) != 0) {
        return refused(endpoint, errno);
    }
    socklen_t known = sizeof address;
    if (getsockname(socket.descriptor(), &address.any, &known) == 0) {
        endpoint.port = ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
    }
    return socket;
}

Socket accept_from(const Socket& listener) noexcept {
    Socket accepted(accept_prepared(listener.descriptor()));
    if (accepted.open()) {
        prepare(accepted.descriptor());
    }
    return accepted;
}

Result<Socket> connect_to(const std::string& host, std::uint16_t port, std::chrono::milliseconds longest) {
    const std::string where = text_of(Endpoint{host, port});
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &found); failed != 0) {
        return Error{ErrorCode::not_found, where + " has no address (" + gai_strerror(failed) + "); check the name"};
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
    int reason = EADDRNOTAVAIL;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        Socket socket(::socket(each->ai_family, SOCK_STREAM | prepared, 0));
        if (!socket.open()) {
            reason = errno;
            continue;
        }
        prepare(socket.descriptor());
        reason = connect_within(socket, *each, longest);
        if (reason == 0) {
            return socket;
        }
    }
    return Error{ErrorCode::unavailable,
                 where + " does not answer (" + std::strerror(reason) + "); is a server listening there?"};
}

Transferred receive_some(const Socket& from, char* to, std::size_t room) noexcept {
    return outcome_of(recv(from.descriptor(), to, room, 0));
}

Transferred send_some(const Socket& to, const char* data, std::size_t size) noexcept {
    return outcome_of(send(to.descriptor(), data, size, quietly));
}

void end_sending(const Socket& to) noexcept { (void)shutdown(to.descriptor(), SHUT_WR); }

Bell::Bell() {
    int ends[2];
    if (pipe_prepared(ends) == 0) {
        reading_ = Socket(ends[0]);
        writing_ = Socket(ends[1]);
        prepare(ends[0]);
        prepare(ends[1]);
    }
}

void Bell::ring() const noexcept {
    const char one = 1;
    [[maybe_unused]] const ssize_t written = write(writing_.descriptor(), &one, 1); // full: it rings already
}

void Bell::silence() const noexcept {
    char some[64];
    while (read(reading_.descriptor(), some, sizeof some) > 0) {
    }
}

void Bell::close() noexcept {
    reading_.close();
    writing_.close();
}

void wait(std::vector<Awaited>& sockets, std::chrono::milliseconds longest) {
    std::vector<pollfd> polled;
    polled.reserve(sockets.size());
    for (const Awaited& one : sockets) {
        polled.push_back({one.socket->descriptor(), static_cast<short>(one.to_send ? POLLOUT : POLLIN), 0});
    }
    const int ready = poll(polled.data(), static_cast<nfds_t>(polled.size()),
                           static_cast<int>(std::clamp<std::int64_t>(longest.count(), 0, 3'600'000)));
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        sockets[i].ready = ready > 0 && polled[i].revents != 0;
    }
}

} // namespace plumb::base
