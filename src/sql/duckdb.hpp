// SPDX-License-Identifier: Apache-2.0
// DuckDB through its C functions, opened at run time: an own statement of the few that we call, for nothing of it may be needed to build.
// Source: duckdb.h of DuckDB 1.5. One thread per session, but for interrupt().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/dynamic_library.hpp"
#include "plumb/result.hpp"
#include "sql/sql.hpp"

namespace plumb::sql {

/// A database in memory.
class Duckdb {
  public:
    /// Error unavailable where no library of DuckDB is there, with how to get one; unsupported where it lacks a function.
    static Result<Duckdb> open();
    Duckdb(Duckdb&& other) noexcept;
    Duckdb& operator=(Duckdb&&) = delete;
    ~Duckdb();

    /// Statements that give nothing.
    Status run(const std::string& statements);
    /// One query. Errors: what DuckDB says of it.
    Result<QueryTable> query(const std::string& text);
    /// From any thread: what runs ends with an error.
    void interrupt();

    struct Calls; // the functions

  private:
    explicit Duckdb(const Calls* calls) : calls_(calls) {}
    Result<std::vector<QueryColumn>> columns_of(const std::string& text);

    const Calls* calls_; // of a library that is never closed: it has threads
    void* database_ = nullptr;
    void* connection_ = nullptr;
};

} // namespace plumb::sql
