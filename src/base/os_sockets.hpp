// SPDX-License-Identifier: Apache-2.0
// TCP sockets of a server, with the bell that wakes it, and of a client. The only place that opens sockets. Nothing here waits but wait() and
// connect_to(); nothing raises a signal; no descriptor survives exec(). Plain owners of one descriptor: one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::base {

/// A descriptor, closed by its owner's end.
class Socket {
  public:
    Socket() = default;
    explicit Socket(int descriptor) noexcept : descriptor_(descriptor) {}
    Socket(Socket&& other) noexcept;
    Socket& operator=(Socket&& other) noexcept;
    ~Socket() { close(); }

    [[nodiscard]] bool open() const noexcept { return descriptor_ >= 0; }
    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    /// Allocates nothing: for forked children too.
    void close() noexcept;

  private:
    int descriptor_ = -1;
};

/// Where a server listens. Addresses are numbers: nobody asks a name server for them.
struct Endpoint {
    std::string address = "127.0.0.1"; // or "::1"
    std::uint16_t port = 0;            // 0: any that is free
};
/// "9464" and ":9464" are on 127.0.0.1, and so is "localhost:9464"; "0.0.0.0:9464", "[::1]:9464". invalid_argument: none of these.
Result<Endpoint> parse_endpoint(std::string_view text);
/// "127.0.0.1:9464", "[::1]:9464"
std::string text_of(const Endpoint& endpoint);

/// Listens there; `endpoint.port` becomes the one that was taken. Errors: already_exists where the port is taken, permission, and
/// unavailable where the address is not this machine's.
Result<Socket> listen_on(Endpoint& endpoint);
/// Closed: nobody waits, or who waited is gone.
Socket accept_from(const Socket& listener) noexcept;

/// To `host`, a name or a number. Its name is looked up first, which takes as long as the system's resolver is told; connecting takes no
/// longer than `longest`, or until a signal. Errors: not_found where nothing has this name, unavailable where nobody answers there.
Result<Socket> connect_to(const std::string& host, std::uint16_t port, std::chrono::milliseconds longest);

enum class Transfer : std::uint8_t { some, later, ended };
struct Transferred {
    Transfer how = Transfer::later;
    std::size_t bytes = 0;
};
/// As much as is there, or as fits, now. ended: the other side closed, or is gone.
Transferred receive_some(const Socket& from, char* to, std::size_t room) noexcept;
Transferred send_some(const Socket& to, const char* data, std::size_t size) noexcept;
/// No more will be sent: what was goes out whole before close().
void end_sending(const Socket& to) noexcept;

/// Wakes a thread that waits. ring() from any thread, and from signal handlers.
class Bell {
  public:
    Bell();
    void ring() const noexcept;
    void silence() const noexcept;
    [[nodiscard]] const Socket& heard() const noexcept { return reading_; }
    void close() noexcept;

  private:
    Socket reading_, writing_;
};

struct Awaited {
    const Socket* socket = nullptr;
    bool to_send = false; // else to receive
    bool ready = false;   // set by wait(); also where the other side is gone
};
/// Until one is ready, or the time is over.
void wait(std::vector<Awaited>& sockets, std::chrono::milliseconds longest);

} // namespace plumb::base
