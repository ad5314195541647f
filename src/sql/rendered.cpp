// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"
#include "page/text_table.hpp"
#include "sql/sql.hpp"

namespace plumb::sql {

namespace {

using Kind = QueryColumn::Kind;

std::string csv_cell(const std::string& text) {
    if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string cell = "\"";
    for (const char character : text) {
        cell += character == '"' ? "\"\"" : std::string(1, character);
    }
    return cell + '"';
}

/// NaN and infinities are no numbers in JSON.
bool is_json_number(const std::string& text) { return text.find_first_not_of("+-.0123456789eE") == std::string::npos; }

void put(base::JsonWriter& json, Kind kind, const std::optional<std::string>& cell) {
    if (!cell) {
        json.null();
    } else if (kind == Kind::truth || (kind == Kind::number && is_json_number(*cell))) {
        json.document(*cell);
    } else {
        json.value(*cell);
    }
}

} // namespace

std::string text_of(const QueryTable& table, const TextOptions& options) {
    constexpr std::size_t widest = 80;
    page::TextTable shown;
    for (const QueryColumn& column : table.columns) {
        shown.add_column(page::printable(column.name, widest),
                         column.kind == Kind::number ? page::TextTable::Align::right : page::TextTable::Align::left);
    }
    for (const auto& row : table.rows) {
        std::vector<std::string> cells;
        for (const std::optional<std::string>& cell : row) {
            cells.push_back(cell ? page::printable(*cell, widest) : "-");
        }
        shown.add_row(std::move(cells));
    }
    std::string text;
    shown.append_to(text, options.color ? "\x1b[1m" : "", options.color ? "\x1b[0m" : "");
    return text;
}

std::string csv_of(const QueryTable& table) {
    std::string csv;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        csv += (i == 0 ? "" : ",") + csv_cell(table.columns[i].name);
    }
    csv += "\r\n";
    for (const auto& row : table.rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            csv += (i == 0 ? "" : ",") + (row[i] ? csv_cell(*row[i]) : "");
        }
        csv += "\r\n";
    }
    return csv;
}

std::string json_of(const QueryTable& table) {
    std::string out;
    base::JsonWriter json(out);
    json.begin_array();
    for (const auto& row : table.rows) {
        json.begin_object();
        for (std::size_t i = 0; i < row.size(); ++i) {
            json.key(table.columns[i].name);
            put(json, table.columns[i].kind, row[i]);
        }
        json.end();
    }
    json.finish();
    return out + '\n';
}

} // namespace plumb::sql
