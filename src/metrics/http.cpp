// SPDX-License-Identifier: Apache-2.0
#include "metrics/http.hpp"

#include <algorithm>

namespace plumb::metrics {
namespace {

constexpr std::string_view plain = "text/plain; charset=utf-8";

std::string answer(std::string_view status, std::string_view type, std::string_view body, bool with_body = true,
                   std::string_view more = {}) {
    std::string text = "HTTP/1.1 ";
    ((((text += status) += "\r\nContent-Type: ") += type) += "\r\nContent-Length: ") += std::to_string(body.size());
    ((text += "\r\nConnection: close\r\n") += more) += "\r\n";
    return with_body ? text.append(body) : text;
}

/// The next word of a request line, which is left without it and the blank behind it.
std::string_view take_word(std::string_view& line) {
    const std::size_t end = line.find(' ');
    const std::string_view word = line.substr(0, end);
    line = end == std::string_view::npos ? std::string_view() : line.substr(end + 1);
    return word;
}

bool is_method(std::string_view word) {
    return !word.empty() && word.size() <= 16 &&
           std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

} // namespace

std::string answer_to(std::string_view received, const std::function<std::string()>& metrics) {
    const std::size_t crlf = received.find("\r\n\r\n");
    const std::size_t end = std::min(crlf, received.find("\n\n"));
    if (end == std::string_view::npos || end > longest_request) {
        return received.size() < longest_request
                   ? std::string()
                   : answer("431 Request Header Fields Too Large", plain, "this request is too long for a scrape\n");
    }
    std::string_view line = received.substr(0, std::min(received.find('\n'), end));
    if (!line.empty() && line.back() == '\r') {
        line.remove_suffix(1);
    }
    const std::string_view method = take_word(line);
    const std::string_view target = take_word(line);
    if (!is_method(method) || target.empty() || target.front() != '/' || !line.starts_with("HTTP/1.")) {
        return answer("400 Bad Request", plain, "this is no request of HTTP/1; say GET /metrics\n");
    }
    const bool head = method == "HEAD";
    if (!head && method != "GET") {
        return answer("405 Method Not Allowed", plain, "metrics can only be read; say GET /metrics\n", true,
                      "Allow: GET, HEAD\r\n");
    }
    if (target.substr(0, target.find('?')) != "/metrics") {
        return answer("404 Not Found", plain, "metrics are at /metrics\n", !head);
    }
    return answer("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics(), !head);
}

} // namespace plumb::metrics
