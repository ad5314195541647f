// SPDX-License-Identifier: Apache-2.0
#include "sql/duckdb.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace plumb::sql {

namespace {

constexpr const char* advice = "`npm install @duckdb/node-bindings-linux-x64` brings it, then start plumb with "
                               "LD_LIBRARY_PATH=$PWD/node_modules/@duckdb/node-bindings-linux-x64";

// As duckdb.h lays them out.
struct ResultOfDuckdb {
    std::uint64_t columns, rows, changed;
    void* column_data;
    char* message;
    void* data;
};
struct TextOfDuckdb { // up to 12 bytes lie inside
    std::uint32_t length;
    char inside[4];
    const char* outside;
};
static_assert(sizeof(ResultOfDuckdb) == 48 && sizeof(TextOfDuckdb) == 16);

constexpr int type_boolean = 1;
constexpr int type_double = 11;
constexpr int type_hugeint = 16;
constexpr int type_decimal = 19;
constexpr int type_uhugeint = 32;

QueryColumn::Kind kind_of(int type) {
    const bool number = (type > type_boolean && type <= type_double) || type == type_hugeint || type == type_decimal ||
                        type == type_uhugeint;
    return type == type_boolean ? QueryColumn::Kind::truth
           : number             ? QueryColumn::Kind::number
                                : QueryColumn::Kind::text;
}

std::string text_at(const void* data, std::size_t row) {
    const TextOfDuckdb& text = static_cast<const TextOfDuckdb*>(data)[row];
    return {text.length <= 12 ? text.inside : text.outside, text.length};
}

/// A message about the query as it stands on lines of its own within ours: without our line before them.
std::string without_wrapper(std::string message) {
    constexpr std::string_view mark = "\nLINE ";
    const std::size_t found = message.find(mark);
    if (found != std::string::npos) {
        const std::size_t at = found + mark.size();
        const std::size_t width = std::min(message.find_first_not_of("0123456789", at), message.size()) - at;
        std::string line = std::to_string(std::strtoull(message.c_str() + at, nullptr, 10) - 1);
        line.insert(0, width - std::min(line.size(), width), ' '); // the caret below keeps its place
        message.replace(at, width, line);
    }
    return message;
}

} // namespace

// name, what it returns, what it takes
#define PLUMB_DUCKDB_CALLS(CALL)                                     \
    CALL(open, int, (const char*, void**))                           \
    CALL(connect, int, (void*, void**))                              \
    CALL(disconnect, void, (void**))                                 \
    CALL(close, void, (void**))                                      \
    CALL(interrupt, void, (void*))                                   \
    CALL(query, int, (void*, const char*, ResultOfDuckdb*))          \
    CALL(destroy_result, void, (ResultOfDuckdb*))                    \
    CALL(result_error, const char*, (ResultOfDuckdb*))               \
    CALL(column_name, const char*, (ResultOfDuckdb*, std::uint64_t)) \
    CALL(fetch_chunk, void*, (ResultOfDuckdb))                       \
    CALL(data_chunk_get_size, std::uint64_t, (void*))                \
    CALL(data_chunk_get_vector, void*, (void*, std::uint64_t))       \
    CALL(vector_get_data, void*, (void*))                            \
    CALL(vector_get_validity, std::uint64_t*, (void*))               \
    CALL(destroy_data_chunk, void, (void**))                         \
    CALL(prepare, int, (void*, const char*, void**))                 \
    CALL(prepare_error, const char*, (void*))                        \
    CALL(destroy_prepare, void, (void**))                            \
    CALL(prepared_statement_column_count, std::uint64_t, (void*))    \
    CALL(prepared_statement_column_type, int, (void*, std::uint64_t))

struct Duckdb::Calls {
#define PLUMB_CALL(name, result, arguments) result(*name) arguments = nullptr;
    PLUMB_DUCKDB_CALLS(PLUMB_CALL)
#undef PLUMB_CALL
};

Result<Duckdb> Duckdb::open() {
    static Calls calls; // one library in a process
    if (calls.open == nullptr) {
        Result<base::DynamicLibrary> library = base::DynamicLibrary::open({"libduckdb.so", "libduckdb.so.1"}, advice);
        if (!library) {
            return library.error();
        }
        Calls found;
#define PLUMB_CALL(name, result, arguments)                                                                   \
    {                                                                                                         \
        const auto function = library->function<result arguments>("duckdb_" #name);                           \
        if (!function) {                                                                                      \
            return Error{ErrorCode::unsupported, function.error().message + "; install DuckDB 1.5 or later"}; \
        }                                                                                                     \
        found.name = *function;                                                                               \
    }
        PLUMB_DUCKDB_CALLS(PLUMB_CALL)
#undef PLUMB_CALL
        (void)base::keep_for_good(*std::move(library));
        calls = found;
    }
    Duckdb made(&calls);
    if (calls.open(nullptr, &made.database_) != 0 || calls.connect(made.database_, &made.connection_) != 0) {
        return Error{ErrorCode::failed, "DuckDB does not open a database in memory; give the process more memory"};
    }
    return made;
}

Duckdb::Duckdb(Duckdb&& other) noexcept
    : calls_(other.calls_), database_(std::exchange(other.database_, nullptr)),
      connection_(std::exchange(other.connection_, nullptr)) {}

Duckdb::~Duckdb() {
    calls_->disconnect(&connection_);
    calls_->close(&database_);
}

void Duckdb::interrupt() { calls_->interrupt(connection_); }

Status Duckdb::run(const std::string& statements) {
    ResultOfDuckdb result{};
    Status status;
    if (calls_->query(connection_, statements.c_str(), &result) != 0) {
        status = Error{ErrorCode::failed, calls_->result_error(&result)};
    }
    calls_->destroy_result(&result);
    return status;
}

Result<std::vector<QueryColumn>> Duckdb::columns_of(const std::string& text) {
    void* prepared = nullptr;
    std::vector<QueryColumn> columns;
    std::optional<Error> error;
    if (calls_->prepare(connection_, text.c_str(), &prepared) != 0) {
        error = Error{ErrorCode::invalid_argument, calls_->prepare_error(prepared)};
    } else {
        const std::uint64_t count = calls_->prepared_statement_column_count(prepared);
        for (std::uint64_t i = 0; i < count; ++i) {
            columns.push_back({{}, kind_of(calls_->prepared_statement_column_type(prepared, i))});
        }
    }
    calls_->destroy_prepare(&prepared);
    return error ? Result<std::vector<QueryColumn>>(*error) : Result<std::vector<QueryColumn>>(std::move(columns));
}

Result<QueryTable> Duckdb::query(const std::string& text) {
    Result<std::vector<QueryColumn>> columns = columns_of(text); // of the text as it is, so that errors quote it
    if (!columns) {
        return columns.error();
    }
    QueryTable table{*std::move(columns), {}};
    ResultOfDuckdb result{};
    // Every value as DuckDB itself writes it: there are forty types, and more to come.
    const std::string cast =
        "select columns(*)::varchar from (\n" + text.substr(0, text.find_last_not_of("; \t\r\n") + 1) + "\n)";
    std::optional<Error> error;
    if (calls_->query(connection_, cast.c_str(), &result) != 0) {
        const std::string message = calls_->result_error(&result);
        const bool other = message.starts_with("Parser Error"); // the text itself was parsed above
        error = Error{ErrorCode::invalid_argument,
                      other ? "plumb sql takes one select and nothing behind it; this is another statement, or has more"
                            : without_wrapper(message)};
    }
    for (std::size_t i = 0; i < table.columns.size() && !error; ++i) {
        table.columns[i].name = calls_->column_name(&result, i); // no two alike, whatever the query says
    }
    while (!error) {
        void* chunk = calls_->fetch_chunk(result);
        if (chunk == nullptr) {
            break;
        }
        const std::size_t rows = calls_->data_chunk_get_size(chunk);
        const std::size_t first = table.rows.size();
        table.rows.resize(first + rows);
        for (std::size_t column = 0; column < table.columns.size(); ++column) {
            void* const vector = calls_->data_chunk_get_vector(chunk, column);
            const void* const data = calls_->vector_get_data(vector);
            const std::uint64_t* const valid = calls_->vector_get_validity(vector); // null: all are
            for (std::size_t row = 0; row < rows; ++row) {
                const bool there = valid == nullptr || (valid[row / 64] >> (row % 64) & 1) != 0;
                table.rows[first + row].push_back(there ? std::optional(text_at(data, row)) : std::nullopt);
            }
        }
        calls_->destroy_data_chunk(&chunk);
    }
    calls_->destroy_result(&result);
    return error ? Result<QueryTable>(*error) : Result<QueryTable>(std::move(table));
}

} // namespace plumb::sql
