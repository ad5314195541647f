// SPDX-License-Identifier: Apache-2.0
#include "upload/target.hpp"

#include <algorithm>
#include <charconv>

namespace plumb::upload {

namespace {

constexpr std::string_view scheme = "clickhouse://";
constexpr std::uint16_t usual_port = 8123;

/// A name that needs no quotes anywhere.
bool plain_name(std::string_view text) {
    const auto fits = [](char character) {
        return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
               (character >= '0' && character <= '9') || character == '_';
    };
    return !text.empty() && std::all_of(text.begin(), text.end(), fits) && (text[0] < '0' || text[0] > '9');
}

bool host_name(std::string_view text) {
    constexpr std::string_view others = "-._~:%"; // of names, and of addresses of either kind
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char character) {
        return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
               (character >= '0' && character <= '9') || others.find(character) != std::string_view::npos;
    });
}

std::optional<HttpServer> server_of(std::string_view text) {
    HttpServer server;
    server.port = usual_port;
    const bool bracketed = text.starts_with('[');
    const std::size_t end = bracketed ? text.find(']') : text.find(':');
    if (bracketed && end == std::string_view::npos) {
        return std::nullopt;
    }
    server.host = text.substr(bracketed ? 1 : 0, bracketed ? end - 1 : end);
    std::string_view port = end == std::string_view::npos ? std::string_view() : text.substr(bracketed ? end + 1 : end);
    if (!port.empty()) {
        port.remove_prefix(1);
        const auto [stop, failed] = std::from_chars(port.data(), port.data() + port.size(), server.port);
        if (failed != std::errc{} || stop != port.data() + port.size() || server.port == 0 ||
            (bracketed && text[end + 1] != ':')) {
            return std::nullopt;
        }
    }
    return host_name(server.host) ? std::optional(server) : std::nullopt;
}

Error misfit(const std::string& what) {
    return {ErrorCode::invalid_argument,
            what + "; say clickhouse://host:8123/plumb, or clickhouse://a:8123,b:8123/plumb for two shards"};
}

} // namespace

Result<Target> parse_target(std::string_view url) {
    const std::string shown = '"' + std::string(url) + '"';
    if (!url.starts_with(scheme)) {
        return misfit(shown + " is no address of ClickHouse");
    }
    if (url.find('@') != std::string_view::npos) {
        return Error{ErrorCode::invalid_argument,
                     "a name or password in an address is seen by everybody on this machine; set CLICKHOUSE_USER and "
                     "CLICKHOUSE_PASSWORD instead"};
    }
    url.remove_prefix(scheme.size());
    const std::size_t slash = url.find('/');
    Target target;
    target.database = slash == std::string_view::npos ? std::string_view() : url.substr(slash + 1);
    if (!plain_name(target.database)) {
        return misfit(shown + " names no database of letters, digits and _");
    }
    for (std::string_view left = url.substr(0, slash);;) {
        const std::string_view text = left.substr(0, left.find(','));
        const std::optional<HttpServer> server = server_of(text);
        if (!server) {
            return misfit(shown + ": \"" + std::string(text) + "\" is no host with a port");
        }
        const auto same = [&](const HttpServer& other) {
            return other.host == server->host && other.port == server->port;
        };
        if (std::any_of(target.shards.begin(), target.shards.end(), same)) {
            return misfit(shown + " names " + text_of(*server) + " twice");
        }
        target.shards.push_back(*server);
        if (text.size() == left.size()) {
            return target;
        }
        left.remove_prefix(text.size() + 1);
    }
}

} // namespace plumb::upload
