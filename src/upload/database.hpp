// SPDX-License-Identifier: Apache-2.0
// One database on one server: statements, and rows. What the server refuses becomes one sentence. One thread.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "upload/http.hpp"

namespace plumb::upload {

class Database {
  public:
    /// CLICKHOUSE_USER and CLICKHOUSE_PASSWORD, where they are set, say who asks.
    Database(HttpServer server, std::string name, const HttpLimits& limits, const std::atomic<bool>& stop);
    [[nodiscard]] std::string where() const { return text_of(server_); }
    /// Its answer, without the last line end.
    [[nodiscard]] Result<std::string> run(std::string_view statement) const;
    /// `blocks`: of a PackedBody.
    [[nodiscard]] Status insert(std::string_view statement, std::string_view blocks) const;

  private:
    [[nodiscard]] Result<std::string> ask(std::string parameters, std::string_view body) const;
    [[nodiscard]] Error refused(const HttpAnswer& answer) const;

    HttpServer server_;
    std::string name_;
    HttpLimits limits_;
    const std::atomic<bool>& stop_;
};

} // namespace plumb::upload
