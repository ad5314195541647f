// SPDX-License-Identifier: Apache-2.0
// A database that somebody else wrote, and that may be hostile: opened read-only and immutable, no code of its schema runs, and
// only tables are read, with a limit of time and memory. Owned by one reader; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/input.hpp"
#include "import/sqlite_calls.hpp"
#include "plumb/result.hpp"

namespace plumb::imported {

class SqliteFile {
  public:
    /// One row; columns by their place in what was asked for.
    class Row {
      public:
        Row(const SqliteCalls& calls, sqlite3_value** values, std::uint64_t& text_bytes)
            : calls_(&calls), values_(values), text_bytes_(text_bytes) {}
        [[nodiscard]] bool is_null(int column) const { return calls_->value_type(values_[column]) == SQLITE_NULL; }
        [[nodiscard]] bool is_text(int column) const { return calls_->value_type(values_[column]) == SQLITE_TEXT; }
        [[nodiscard]] std::int64_t number(int column) const {
            return calls_->value_int64(values_[column]);
        } // 0 where it is null
        [[nodiscard]] std::int64_t number_or(int column, std::int64_t otherwise) const {
            const std::int64_t value = number(column);
            return value != 0 || !is_null(column) ? value : otherwise;
        }
        [[nodiscard]] std::string_view text(int column) const; // until the next row

      private:
        const SqliteCalls* calls_;
        sqlite3_value** values_;
        std::uint64_t& text_bytes_; // given out so far
    };

    /// Errors: corrupt where it is no database; unsupported where its schema cannot be read safely; unavailable without SQLite.
    static Result<SqliteFile> open(const std::string& path, const InputLimits& limits = {}, double seconds = 600);
    /// The same of a file's content; `path` names it in errors.
    static Result<SqliteFile> of_content(std::vector<char> content, const std::string& path,
                                         const InputLimits& limits = {}, double seconds = 600);
    SqliteFile(SqliteFile&&) noexcept;
    SqliteFile& operator=(SqliteFile&&) noexcept;
    ~SqliteFile();

    /// Whether there is such a table; a view or virtual table is none, whatever the schema says of it.
    [[nodiscard]] bool has(const std::string& table) const;
    [[nodiscard]] bool has(const std::string& table, const std::string& column) const;
    /// Every row, in the order of the table. A column that is not there is null. `take` gets rows until the table ends, or is
    /// damaged: that is damaged(), and so is a table whose rows take more bytes than the file has. Where the time is used up, there
    /// are no more rows of any.
    void each(const std::string& table, const std::vector<std::string>& columns,
              const std::function<void(const Row&)>& take);
    /// So many rows it probably has: what to make room for.
    [[nodiscard]] std::uint64_t likely_rows(const std::string& table) const;
    [[nodiscard]] bool damaged() const;
    /// Errors: failed where it was asked to stop; out_of_memory where the time was used up; corrupt where each() met no table, but a view or virtual one.
    [[nodiscard]] Status status() const;

  private:
    struct State;
    explicit SqliteFile(std::unique_ptr<State> state);
    static Result<SqliteFile> make(std::unique_ptr<State> state, const std::string& uri, const InputLimits& limits,
                                   double seconds);
    std::unique_ptr<State> state_;
};

} // namespace plumb::imported
