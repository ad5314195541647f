// SPDX-License-Identifier: Apache-2.0
#include "import/sqlite_file.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <sqlite3.h>
#include <system_error>
#include <utility>

namespace plumb::imported {
namespace {

constexpr int steps_between_looks = 100'000; // of SQLite's machine, at the clock
constexpr int longest_value = 1 << 20;
constexpr std::int64_t most_memory = std::int64_t{64} << 20;
constexpr std::size_t journal_mode = 18; // in the header: two bytes, 2 where there is a write-ahead log
constexpr std::size_t most_columns = 512;
constexpr std::uint64_t least_row = 4; // bytes that a row takes in the file, beside one for each column

/// As a URI, with every character that means something there escaped.
std::string uri_of(const std::string& path) {
    static constexpr char digits[] = "0123456789ABCDEF";
    std::string uri = "file:";
    for (const char c : path) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                           c == '-' || c == '_' || c == '.';
        if (plain) {
            uri.push_back(c);
        } else {
            uri += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return uri + "?mode=ro&immutable=1";
}

std::string in_query(std::string_view name) {
    std::string text = "\"";
    for (const char c : name) {
        text += c == '"' ? "\"\"" : std::string(1, c);
    }
    return text + "\"";
}

} // namespace

struct SqliteFile::State {
    ~State() { ::sqlite3_close(database); }
    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    static int look(void* self) {
        auto* state = static_cast<State*>(self);
        state->late = std::chrono::steady_clock::now() > state->until;
        state->stopped = state->limits.stop != nullptr && state->limits.stop->load(std::memory_order_relaxed);
        state->tell_bytes();
        return state->late || state->stopped ? 1 : 0;
    }

    /// Pages that were read since it was told last.
    void tell_bytes() {
        int pages = 0;
        int most = 0;
        if (limits.bytes != nullptr &&
            ::sqlite3_db_status(database, SQLITE_DBSTATUS_CACHE_MISS, &pages, &most, 1) == SQLITE_OK) {
            limits.bytes->fetch_add(static_cast<std::uint64_t>(pages) * page_size, std::memory_order_relaxed);
        }
    }

    /// SQLITE_DONE, or what stopped it. Pages that lead to each other can hold rows without end: what takes more bytes than the
    /// file has, `row_bytes` each and its texts, is damage.
    int run(const std::string& query, std::uint64_t row_bytes, const std::function<void(const Row&)>& take) {
        sqlite3_stmt* statement = nullptr;
        int status = ::sqlite3_prepare_v2(database, query.c_str(), -1, &statement, nullptr);
        std::uint64_t bytes = 0;
        while (status == SQLITE_OK || status == SQLITE_ROW) {
            status = bytes > file_bytes ? SQLITE_CORRUPT : ::sqlite3_step(statement);
            if (status == SQLITE_ROW) {
                bytes += row_bytes;
                take(Row(statement, bytes));
            }
        }
        ::sqlite3_finalize(statement);
        return status;
    }

    std::string path;
    std::vector<char> content; // where it lies in memory
    sqlite3* database = nullptr;
    InputLimits limits;
    std::uint64_t file_bytes = 0;
    std::uint64_t page_size = 0;
    std::map<std::string, std::set<std::string>> tables; // and their columns
    std::set<std::string> foreign;                       // views and virtual tables
    std::string refused;                                 // of those, one that was asked for
    std::chrono::steady_clock::time_point until;
    bool late = false;
    bool stopped = false;
    bool damaged = false;
};

bool SqliteFile::Row::is_null(int column) const { return ::sqlite3_column_type(statement_, column) == SQLITE_NULL; }
bool SqliteFile::Row::is_text(int column) const { return ::sqlite3_column_type(statement_, column) == SQLITE_TEXT; }
std::int64_t SqliteFile::Row::number(int column) const { return ::sqlite3_column_int64(statement_, column); }
std::int64_t SqliteFile::Row::number_or(int column, std::int64_t otherwise) const {
    const std::int64_t value = number(column);
    return value != 0 || !is_null(column) ? value : otherwise;
}
std::string_view SqliteFile::Row::text(int column) const {
    const auto* text = reinterpret_cast<const char*>(::sqlite3_column_text(statement_, column));
    if (text == nullptr) {
        return {};
    }
    const auto size = static_cast<std::size_t>(::sqlite3_column_bytes(statement_, column));
    text_bytes_ += size;
    return {text, size};
}

SqliteFile::SqliteFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SqliteFile::SqliteFile(SqliteFile&&) noexcept = default;
SqliteFile& SqliteFile::operator=(SqliteFile&&) noexcept = default;
SqliteFile::~SqliteFile() = default;

Result<SqliteFile> SqliteFile::open(const std::string& path, const InputLimits& limits, double seconds) {
    auto state = std::make_unique<State>();
    state->path = path;
    return make(std::move(state), uri_of(path), limits, seconds);
}

Result<SqliteFile> SqliteFile::of_content(std::vector<char> content, const std::string& path, const InputLimits& limits,
                                          double seconds) {
    auto state = std::make_unique<State>();
    state->path = path;
    state->content = std::move(content);
    if (state->content.size() > journal_mode + 1) {
        state->content[journal_mode] = state->content[journal_mode + 1] = 1; // memory has no log beside it
    }
    return make(std::move(state), ":memory:", limits, seconds);
}

Result<SqliteFile> SqliteFile::make(std::unique_ptr<State> state, const std::string& uri, const InputLimits& limits,
                                    double seconds) {
    State& s = *state;
    s.limits = limits;
    const std::string& path = s.path;
    s.until = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
    (void)::sqlite3_hard_heap_limit64(most_memory);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    const auto size = static_cast<sqlite3_int64>(s.content.size());
    if (::sqlite3_open_v2(uri.c_str(), &s.database, flags, nullptr) != SQLITE_OK ||
        (size != 0 && ::sqlite3_deserialize(s.database, "main", reinterpret_cast<unsigned char*>(s.content.data()),
                                            size, size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)) {
        return Error{ErrorCode::corrupt, path + " cannot be opened as a SQLite database"};
    }
    for (const auto& [setting, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                         {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                         {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                         {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                         {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}}) {
        if (::sqlite3_db_config(s.database, setting, value, nullptr) != SQLITE_OK) {
            return Error{ErrorCode::unsupported,
                         "this SQLite cannot read a file that may be hostile: it is older than 3.31"};
        }
    }
    ::sqlite3_limit(s.database, SQLITE_LIMIT_LENGTH, longest_value);
    ::sqlite3_limit(s.database, SQLITE_LIMIT_ATTACHED, 0);
    ::sqlite3_progress_handler(s.database, steps_between_looks, &State::look, &s);
    std::error_code unknown;
    s.file_bytes = size != 0 ? s.content.size() : std::filesystem::file_size(path, unknown);
    (void)s.run("PRAGMA cell_size_check = ON", 0, [](const Row&) {});
    (void)s.run("PRAGMA page_size", 0, [&s](const Row& row) {
        s.page_size = static_cast<std::uint64_t>(std::max<std::int64_t>(row.number(0), 1));
        s.damaged = s.file_bytes % s.page_size != 0; // it was cut
    });
    std::vector<std::string> names;
    // A virtual table has no root page, or is made by other words, which SQLite goes by. It writes these itself, in this form.
    const int listed =
        s.run("SELECT name, type = 'table' AND rootpage > 0 AND sql GLOB 'CREATE TABLE *' FROM sqlite_master "
              "WHERE type IN ('table', 'view')",
              least_row, [&](const Row& row) {
                  if (row.number(1) == 0) {
                      s.foreign.emplace(row.text(0));
                  } else if (names.size() < most_columns) {
                      names.emplace_back(row.text(0));
                  }
              });
    if (listed != SQLITE_DONE) {
        return Error{ErrorCode::corrupt,
                     path + " is no SQLite database that can be read: " + ::sqlite3_errmsg(s.database)};
    }
    for (const std::string& name : names) {
        std::set<std::string>& columns = s.tables[name];
        // Columns that are computed are not listed.
        (void)s.run("PRAGMA table_info(" + in_query(name) + ")", 0, [&](const Row& row) {
            if (columns.size() < most_columns) {
                columns.emplace(row.text(1));
            }
        });
    }
    return SqliteFile(std::move(state));
}

bool SqliteFile::has(const std::string& table) const { return state_->tables.contains(table); }
bool SqliteFile::has(const std::string& table, const std::string& column) const {
    const auto found = state_->tables.find(table);
    return found != state_->tables.end() && found->second.contains(column);
}
bool SqliteFile::damaged() const { return state_->damaged; }

void SqliteFile::each(const std::string& table, const std::vector<std::string>& columns,
                      const std::function<void(const Row&)>& take) {
    if (state_->foreign.contains(table)) {
        state_->refused = table;
    }
    if (!has(table) || state_->late || state_->stopped) {
        return;
    }
    std::string query = "SELECT ";
    std::uint64_t row_bytes = least_row;
    for (const std::string& column : columns) {
        const bool there = has(table, column);
        query += (&column == columns.data() ? "" : ", ") + (there ? in_query(column) : std::string("NULL"));
        row_bytes += there ? 1 : 0;
    }
    // An index may claim other rows than the table has.
    const int status = state_->run(query + " FROM " + in_query(table) + " NOT INDEXED", row_bytes, take);
    state_->damaged = state_->damaged || status != SQLITE_DONE;
}

Status SqliteFile::status() const {
    if (state_->stopped) {
        return stopped_error(state_->path);
    }
    if (state_->late) {
        return Error{ErrorCode::out_of_memory,
                     state_->path + " takes longer to read than any trace should: it is refused"};
    }
    if (!state_->refused.empty()) {
        return Error{ErrorCode::corrupt, state_->path + " has a view or virtual table in place of the table " +
                                             state_->refused + ": it is refused"};
    }
    return {};
}

} // namespace plumb::imported
