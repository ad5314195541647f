// SPDX-License-Identifier: Apache-2.0
// Questions in SQL to exported tables, answered by DuckDB. The one header that the command includes. One thread.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plumb/answer.hpp"
#include "plumb/result.hpp"

namespace plumb::sql {

struct QueryColumn {
    enum class Kind { text, number, truth };
    std::string name;
    Kind kind = Kind::text;
};

struct QueryTable {
    std::vector<QueryColumn> columns;
    std::vector<std::vector<std::optional<std::string>>> rows; // as DuckDB writes them; none: NULL
    /// Bricks of which every call lies in a sampled step: the view bricks and the shipped queries have none of them.
    std::string only_sampled{};
};

/// A query that comes with plumb: share/plumb/queries/<name>.sql.
struct ShippedQuery {
    std::string name, meaning, text;
};
[[nodiscard]] const std::vector<ShippedQuery>& shipped_queries();

/// Whether DuckDB is here; else error unavailable with what to do.
[[nodiscard]] Status ready();

/// What the tables call a recording, and its file.
using Names = std::vector<std::pair<std::string, std::string>>;
/// `folder`: as the export format parquet writes it. Errors: as ready(), what DuckDB says of the query, and failed once `stop` is true.
[[nodiscard]] Result<QueryTable> query(const std::string& text, const std::string& folder, const Names& recordings,
                                       const std::atomic<bool>& stop);

/// Aligned, for people; CSV (RFC 4180; an empty cell is NULL, "" an empty text); JSON, a list with an object a row.
[[nodiscard]] std::string text_of(const QueryTable& table, const TextOptions& options);
[[nodiscard]] std::string csv_of(const QueryTable& table);
[[nodiscard]] std::string json_of(const QueryTable& table);

} // namespace plumb::sql
