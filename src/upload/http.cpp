// SPDX-License-Identifier: Apache-2.0
#include "upload/http.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/os_sockets.hpp"

namespace plumb::upload {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view line_end = "\r\n";

bool same_word(std::string_view a, std::string_view b) {
    const auto lower = [](char character) {
        return character >= 'A' && character <= 'Z' ? static_cast<char>(character + 32) : character;
    };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view()
                                           : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool parse(std::string_view text, std::size_t& to, int base) {
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), to, base);
    return failed == std::errc{} && end == text.data() + text.size();
}

std::string head_of(const HttpServer& server, const HttpRequest& request) {
    std::string head = "POST " + request.target + " HTTP/1.1\r\nHost: " + text_of(server) +
                       "\r\nConnection: close\r\nContent-Length: " + std::to_string(request.body.size()) + "\r\n";
    for (const auto& [name, value] : request.headers) {
        head += name + ": " + value + "\r\n";
    }
    return head + "\r\n";
}

/// What is still to be sent: the head, then the body.
class Outgoing {
  public:
    Outgoing(std::string_view head, std::string_view body) : parts_{head, body} {}
    [[nodiscard]] bool done() const { return parts_[0].empty() && parts_[1].empty(); }
    void send_to(const base::Socket& socket) {
        std::string_view& part = parts_[0].empty() ? parts_[1] : parts_[0];
        const base::Transferred sent = base::send_some(socket, part.data(), part.size());
        part.remove_prefix(sent.bytes);
        if (sent.how == base::Transfer::ended) { // it may have answered before it closed
            parts_[0] = parts_[1] = {};
        }
    }

  private:
    std::string_view parts_[2];
};

HttpReader::State receive(const base::Socket& socket, HttpReader& reader) {
    char bytes[16384];
    const base::Transferred got = base::receive_some(socket, bytes, sizeof bytes);
    switch (got.how) {
    case base::Transfer::some:
        return reader.add({bytes, got.bytes});
    case base::Transfer::ended:
        return reader.end();
    case base::Transfer::later:
        break;
    }
    return HttpReader::State::more;
}

} // namespace

std::string text_of(const HttpServer& server) { return base::text_of(base::Endpoint{server.host, server.port}); }

std::string url_encoded(std::string_view text) {
    constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char character : text) {
        if (plain.find(character) != std::string_view::npos) {
            encoded += character;
        } else {
            const auto byte = static_cast<unsigned char>(character);
            encoded += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return encoded;
}

HttpReader::State HttpReader::add(std::string_view bytes) {
    bytes_ += bytes.size();
    if (bytes_ > most_) {
        return State::broken;
    }
    received_ += bytes;
    return read();
}

HttpReader::State HttpReader::end() {
    if (!in_body_ || how_ != Body::until_end) {
        return State::broken;
    }
    answer_.body = std::move(received_);
    return State::complete;
}

HttpReader::State HttpReader::read() {
    while (!in_body_) {
        const std::size_t end = received_.find("\r\n\r\n");
        if (end == std::string::npos) {
            return State::more;
        }
        if (!read_head(std::string_view(received_).substr(0, end))) {
            return State::broken;
        }
        received_.erase(0, end + 4);
        in_body_ = answer_.status >= 200; // below, another head follows
    }
    switch (how_) {
    case Body::of_length:
        if (received_.size() < length_) {
            return State::more;
        }
        answer_.body = received_.substr(0, length_);
        return State::complete;
    case Body::chunked:
        return read_chunks();
    case Body::until_end:
        break;
    }
    return State::more;
}

bool HttpReader::read_head(std::string_view head) {
    const std::string_view first = head.substr(0, head.find(line_end));
    std::size_t status = 0;
    if (!first.starts_with("HTTP/1.") || first.size() < 12 || first[8] != ' ' ||
        (first.size() > 12 && first[12] != ' ') || !parse(first.substr(9, 3), status, 10) || status < 100 ||
        status > 599) {
        return false;
    }
    answer_.status = static_cast<int>(status);
    how_ = status == 204 ? Body::of_length : Body::until_end;
    for (head.remove_prefix(first.size()); !head.empty();) {
        head.remove_prefix(line_end.size());
        const std::string_view line = head.substr(0, head.find(line_end));
        head.remove_prefix(line.size());
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos || !read_header(line.substr(0, colon), trimmed(line.substr(colon + 1)))) {
            return false;
        }
    }
    return true;
}

bool HttpReader::read_header(std::string_view name, std::string_view value) {
    if (same_word(name, "Location")) {
        answer_.location = value;
    }
    if (same_word(name, "Transfer-Encoding")) {
        how_ = Body::chunked;
        return same_word(value, "chunked");
    }
    if (same_word(name, "Content-Length") && how_ != Body::chunked) {
        how_ = Body::of_length;
        return parse(value, length_, 10) && length_ <= most_;
    }
    return true;
}

HttpReader::State HttpReader::read_chunks() {
    for (;;) {
        const std::size_t end = received_.find(line_end);
        if (end == std::string::npos) {
            return State::more;
        }
        const std::string_view line = std::string_view(received_).substr(0, end);
        std::size_t size = 0;
        if (!parse(trimmed(line.substr(0, line.find(';'))), size, 16) || size > most_) {
            return State::broken;
        }
        if (size == 0) { // trailers are nobody's concern
            return State::complete;
        }
        const std::size_t begin = end + line_end.size();
        if (received_.size() < begin + size + line_end.size()) {
            return State::more;
        }
        answer_.body.append(received_, begin, size);
        if (received_.compare(begin + size, line_end.size(), line_end) != 0) {
            return State::broken;
        }
        received_.erase(0, begin + size + line_end.size());
    }
}

Result<HttpAnswer> post(const HttpServer& server, const HttpRequest& request, const HttpLimits& limits,
                        const std::atomic<bool>& stop) {
    constexpr std::chrono::milliseconds look{200}; // at `stop`: a signal may come right before a wait
    const Result<base::Socket> socket = base::connect_to(server.host, server.port, limits.to_connect);
    if (!socket) {
        return stop.load() ? Error{ErrorCode::failed, "interrupted"} : socket.error();
    }
    const std::string head = head_of(server, request);
    Outgoing outgoing(head, request.body);
    HttpReader reader(limits.bytes);
    const Clock::time_point until = Clock::now() + limits.to_answer;
    HttpReader::State state = HttpReader::State::more;
    while (state == HttpReader::State::more) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
        if (stop.load()) {
            return Error{ErrorCode::failed, "interrupted"};
        }
        if (left.count() <= 0) {
            return Error{ErrorCode::unavailable, text_of(server) + " did not answer within " +
                                                     std::to_string(limits.to_answer.count() / 1000) +
                                                     " s; try again when it has less to do"};
        }
        std::vector<base::Awaited> awaited{{&*socket, false}};
        if (!outgoing.done()) {
            awaited.push_back({&*socket, true});
        }
        base::wait(awaited, std::min(left, look));
        if (awaited.size() > 1 && awaited[1].ready) {
            outgoing.send_to(*socket);
        }
        if (awaited[0].ready) {
            state = receive(*socket, reader);
        }
    }
    if (state == HttpReader::State::broken) {
        return Error{ErrorCode::unavailable,
                     text_of(server) +
                         " gave no whole answer of HTTP; is it ClickHouse's http_port (8123), and does it still run?"};
    }
    return reader.take();
}

} // namespace plumb::upload
