// SPDX-License-Identifier: Apache-2.0
// A client of HTTP/1.1: one request on one connection, and its whole answer. Everything a server can do to it is bounded: the time and
// the bytes. One thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::upload {

struct HttpServer {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;
};
/// "127.0.0.1:8123", "[::1]:8123"
std::string text_of(const HttpServer& server);

struct HttpRequest {
    std::string target = "/"; // path and query, encoded
    std::vector<std::pair<std::string, std::string>> headers;
    std::string_view body;
};

struct HttpAnswer {
    int status = 0;
    std::string location; // of a redirect
    std::string body;
};

struct HttpLimits {
    std::chrono::milliseconds to_connect{10'000}; // for each address of the host
    std::chrono::milliseconds to_answer{120'000}; // from the first byte sent to the last received
    std::size_t bytes = std::size_t{1} << 20;     // of the answer
};

/// Letters, digits and -._~ stay; the rest as %XX.
std::string url_encoded(std::string_view text);

/// POST. Errors: as base::connect_to(); unavailable where the answer is late, cut, too long or no HTTP; failed once `stop` is true. Any
/// status is an answer.
Result<HttpAnswer> post(const HttpServer& server, const HttpRequest& request, const HttpLimits& limits,
                        const std::atomic<bool>& stop);

/// Of one answer, as its bytes come in.
class HttpReader {
  public:
    enum class State { more, complete, broken };
    explicit HttpReader(std::size_t most_bytes) : most_(most_bytes) {}
    State add(std::string_view bytes);
    /// The server sends no more.
    State end();
    [[nodiscard]] HttpAnswer take() { return std::move(answer_); }

  private:
    enum class Body { of_length, chunked, until_end };
    State read();
    bool read_head(std::string_view head);
    bool read_header(std::string_view name, std::string_view value);
    State read_chunks();

    std::size_t most_;
    std::string received_;  // not yet read
    std::size_t bytes_ = 0; // received in all
    bool in_body_ = false;
    Body how_ = Body::until_end;
    std::size_t length_ = 0; // of the body
    HttpAnswer answer_;
};

} // namespace plumb::upload
