// SPDX-License-Identifier: Apache-2.0
#include "import/sqlite_file.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

namespace plumb::imported {
namespace {

constexpr int steps_between_looks = 100'000; // of SQLite's machine, at the clock
constexpr int longest_value = 1 << 20;
constexpr std::int64_t most_memory = std::int64_t{64} << 20;
constexpr std::size_t journal_mode = 18; // in the header: two bytes, 2 where there is a write-ahead log
constexpr std::size_t most_columns = 512;
constexpr std::uint64_t likely_row = 32;
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
    explicit State(const SqliteCalls& sqlite) : calls(sqlite) {}
    ~State() { calls.close(database); }
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
            calls.db_status(database, SQLITE_DBSTATUS_CACHE_MISS, &pages, &most, 1) == SQLITE_OK) {
            limits.bytes->fetch_add(static_cast<std::uint64_t>(pages) * page_size, std::memory_order_relaxed);
        }
    }

    /// Of the query that runs.
    struct Rows {
        State& state;
        const std::function<void(const Row&)>& take;
        std::uint64_t row_bytes;
        std::uint64_t bytes = 0;
        std::exception_ptr failed = nullptr;

        void add(sqlite3_context* context, sqlite3_value** values) {
            bytes += row_bytes;
            try {
                take(Row(state.calls, values, bytes));
            } catch (...) {
                failed = std::current_exception(); // not through a library of C
            }
            if (failed || bytes > state.file_bytes) {
                state.calls.result_error_code(context, SQLITE_CORRUPT);
            }
        }
    };
    static void take_row(sqlite3_context* context, int, sqlite3_value** values) {
        static const SqliteCalls& opened = **sqlite_calls(); // else there would be no row
        static_cast<State*>(opened.user_data(context))->rows->add(context, values);
    }

    /// SQLITE_OK, or what stopped it. Pages that lead to each other can hold rows without end: what takes more bytes than the
    /// file has, `row_bytes` each and its texts, is damage. A function that SQLite calls with each row takes half the time of
    /// asking for one after the other.
    int run(const std::string& columns, const std::string& from, std::uint64_t row_bytes,
            const std::function<void(const Row&)>& take) {
        Rows running{*this, take, row_bytes};
        rows = &running;
        const int status =
            calls.exec(database, ("SELECT plumb_row(" + columns + ") FROM " + from).c_str(), nullptr, nullptr, nullptr);
        if (running.failed) {
            std::rethrow_exception(running.failed);
        }
        return status;
    }

    /// What a query gives that gives one number; 0 where it gives none.
    std::uint64_t number(const std::string& query) {
        std::uint64_t value = 0;
        const auto take = [](void* to, int, char** texts, char**) {
            *static_cast<std::uint64_t*>(to) = texts[0] == nullptr ? 0 : std::strtoull(texts[0], nullptr, 10);
            return 0;
        };
        (void)calls.exec(database, query.c_str(), take, &value, nullptr);
        return value;
    }

    const SqliteCalls& calls;
    std::string path;
    std::vector<char> content; // where it lies in memory
    sqlite3* database = nullptr;
    Rows* rows = nullptr;
    InputLimits limits;
    std::uint64_t file_bytes = 0;
    std::uint64_t page_size = 1;
    std::map<std::string, std::set<std::string>> tables; // and their columns
    std::set<std::string> foreign;                       // views and virtual tables
    std::string refused;                                 // of those, one that was asked for
    std::chrono::steady_clock::time_point until;
    bool late = false;
    bool stopped = false;
    bool damaged = false;
};

std::string_view SqliteFile::Row::text(int column) const {
    const auto* text = reinterpret_cast<const char*>(calls_->value_text(values_[column]));
    if (text == nullptr) {
        return {};
    }
    const auto size = static_cast<std::size_t>(calls_->value_bytes(values_[column]));
    text_bytes_ += size;
    return {text, size};
}

SqliteFile::SqliteFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
SqliteFile::SqliteFile(SqliteFile&&) noexcept = default;
SqliteFile& SqliteFile::operator=(SqliteFile&&) noexcept = default;
SqliteFile::~SqliteFile() = default;

Result<SqliteFile> SqliteFile::open(const std::string& path, const InputLimits& limits, double seconds) {
    const Result<const SqliteCalls*> calls = sqlite_calls();
    if (!calls) {
        return calls.error();
    }
    auto state = std::make_unique<State>(**calls);
    state->path = path;
    return make(std::move(state), uri_of(path), limits, seconds);
}

Result<SqliteFile> SqliteFile::of_content(std::vector<char> content, const std::string& path, const InputLimits& limits,
                                          double seconds) {
    const Result<const SqliteCalls*> calls = sqlite_calls();
    if (!calls) {
        return calls.error();
    }
    auto state = std::make_unique<State>(**calls);
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
    (void)s.calls.hard_heap_limit64(most_memory);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
    const auto size = static_cast<sqlite3_int64>(s.content.size());
    if (s.calls.open_v2(uri.c_str(), &s.database, flags, nullptr) != SQLITE_OK ||
        (size != 0 && s.calls.deserialize(s.database, "main", reinterpret_cast<unsigned char*>(s.content.data()), size,
                                          size, SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)) {
        return Error{ErrorCode::corrupt, path + " cannot be opened as a SQLite database"};
    }
    for (const auto& [setting, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                         {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                         {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                         {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                         {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0}}) {
        if (s.calls.db_config(s.database, setting, value, nullptr) != SQLITE_OK) {
            return Error{ErrorCode::unsupported,
                         "this SQLite cannot read a file that may be hostile: it is older than 3.31"};
        }
    }
    s.calls.limit(s.database, SQLITE_LIMIT_LENGTH, longest_value);
    s.calls.limit(s.database, SQLITE_LIMIT_ATTACHED, 0);
    s.calls.progress_handler(s.database, steps_between_looks, &State::look, &s);
    std::error_code unknown;
    s.file_bytes = size != 0 ? s.content.size() : std::filesystem::file_size(path, unknown);
    (void)s.calls.create_function(s.database, "plumb_row", -1, SQLITE_UTF8 | SQLITE_DIRECTONLY, &s, nullptr,
                                  &State::take_row, [](sqlite3_context*) {});
    (void)s.calls.exec(s.database, "PRAGMA cell_size_check = ON", nullptr, nullptr, nullptr);
    s.page_size = std::max<std::uint64_t>(s.number("PRAGMA page_size"), 1);
    s.damaged = s.file_bytes % s.page_size != 0; // it was cut
    std::vector<std::string> names;
    // A virtual table has no root page, or is made by other words, which SQLite goes by. It writes these itself, in this form.
    const int listed = s.run("name, type = 'table' AND rootpage > 0 AND sql GLOB 'CREATE TABLE *'",
                             "sqlite_master WHERE type IN ('table', 'view')", least_row, [&](const Row& row) {
                                 if (row.number(1) == 0) {
                                     s.foreign.emplace(row.text(0));
                                 } else if (names.size() < most_columns) {
                                     names.emplace_back(row.text(0));
                                 }
                             });
    if (listed != SQLITE_OK) {
        return Error{ErrorCode::corrupt,
                     path + " is no SQLite database that can be read: " + s.calls.errmsg(s.database)};
    }
    for (const std::string& name : names) {
        // Columns that are computed are not listed.
        const auto take_name = [](void* to, int, char** texts, char**) {
            auto& columns = *static_cast<std::set<std::string>*>(to);
            if (columns.size() < most_columns) {
                columns.emplace(texts[1]);
            }
            return 0;
        };
        (void)s.calls.exec(s.database, ("PRAGMA table_info(" + in_query(name) + ")").c_str(), take_name,
                           &s.tables[name], nullptr);
    }
    return SqliteFile(std::move(state));
}

bool SqliteFile::has(const std::string& table) const { return state_->tables.contains(table); }
bool SqliteFile::has(const std::string& table, const std::string& column) const {
    const auto found = state_->tables.find(table);
    return found != state_->tables.end() && found->second.contains(column);
}
std::uint64_t SqliteFile::likely_rows(const std::string& table) const {
    const std::uint64_t last = has(table) ? state_->number("SELECT max(rowid) FROM " + in_query(table)) : 0;
    return std::min(last, state_->file_bytes / likely_row);
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
    std::string query;
    std::uint64_t row_bytes = least_row;
    for (const std::string& column : columns) {
        const bool there = has(table, column);
        query += (&column == columns.data() ? "" : ", ") + (there ? in_query(column) : std::string("NULL"));
        row_bytes += there ? 1 : 0;
    }
    // An index may claim other rows than the table has.
    const int status = state_->run(query, in_query(table) + " NOT INDEXED", row_bytes, take);
    state_->damaged = state_->damaged || status != SQLITE_OK;
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
