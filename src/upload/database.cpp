// SPDX-License-Identifier: Apache-2.0
#include "upload/database.hpp"

#include <cstdlib>

#include "base/utf8.hpp"

namespace plumb::upload {

namespace {

constexpr std::size_t most_shown = 300; // characters of what a server says

std::string first_line(const std::string& text) {
    std::string line = base::valid_utf8(text.substr(0, text.find_first_of("\r\n")));
    if (line.size() > most_shown) {
        line = base::valid_utf8(line.substr(0, most_shown)) + "…";
    }
    for (char& character : line) {
        if (static_cast<unsigned char>(character) < ' ') {
            character = ' ';
        }
    }
    return line;
}

bool has_code(const std::string& text, int code) {
    return text.find("Code: " + std::to_string(code) + ',') == 0 ||
           text.find("Code: " + std::to_string(code) + '.') == 0;
}

} // namespace

Database::Database(HttpServer server, std::string name, const HttpLimits& limits, const std::atomic<bool>& stop)
    : server_(std::move(server)), name_(std::move(name)), limits_(limits), stop_(stop) {}

Error Database::refused(const HttpAnswer& answer) const {
    const std::string& said = answer.body;
    constexpr const char* how =
        "; create it on every shard with share/plumb/clickhouse/tables.sql (docs/reference/clickhouse.md)";
    if (has_code(said, 60) || has_code(said, 81)) { // UNKNOWN_TABLE, UNKNOWN_DATABASE
        return {ErrorCode::not_found,
                where() + " lacks what rows go into, in the database " + name_ + ": " + first_line(said) + how};
    }
    if (has_code(said, 192) || has_code(said, 193) || has_code(said, 194) ||
        has_code(said, 516)) { // unknown user, wrong password, none, refused
        return {ErrorCode::permission,
                where() + " does not let this user in; set CLICKHOUSE_USER and CLICKHOUSE_PASSWORD"};
    }
    if (answer.status >= 300 && answer.status < 400) {
        return {ErrorCode::failed,
                where() + " sends on to " + (answer.location.empty() ? "no place" : first_line(answer.location)) +
                    " (HTTP " + std::to_string(answer.status) + "); name the server that takes rows"};
    }
    return {ErrorCode::failed, where() + " refuses (HTTP " + std::to_string(answer.status) + "): " + first_line(said)};
}

Result<std::string> Database::ask(std::string parameters, std::string_view body) const {
    HttpRequest request;
    request.target = "/?database=" + name_ + std::move(parameters);
    request.body = body;
    for (const auto& [variable, header] :
         {std::pair("CLICKHOUSE_USER", "X-ClickHouse-User"), std::pair("CLICKHOUSE_PASSWORD", "X-ClickHouse-Key")}) {
        const char* const value = std::getenv(variable);
        if (value == nullptr) {
            continue;
        }
        if (std::string_view(value).find_first_of("\r\n") != std::string_view::npos) {
            return Error{ErrorCode::invalid_argument,
                         std::string(variable) + " holds a line end, which cannot be sent; set it without"};
        }
        request.headers.emplace_back(header, value);
    }
    Result<HttpAnswer> answer = post(server_, request, limits_, stop_);
    if (!answer) {
        return answer.error();
    }
    // What fails after the first byte of an answer comes behind its 200.
    if (answer->status != 200 || answer->body.starts_with("Code: ")) {
        return refused(*answer);
    }
    if (answer->body.ends_with('\n')) {
        answer->body.pop_back();
    }
    return std::move(answer->body);
}

Result<std::string> Database::run(std::string_view statement) const { return ask("", statement); }

Status Database::insert(std::string_view statement, std::string_view blocks) const {
    const Result<std::string> answer = ask(
        "&decompress=1&http_native_compression_disable_checksumming_on_decompress=1&query=" + url_encoded(statement),
        blocks);
    return answer.ok() ? Status() : answer.error();
}

} // namespace plumb::upload
