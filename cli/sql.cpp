// SPDX-License-Identifier: Apache-2.0
// plumb sql: questions in SQL to recordings, by DuckDB, over the tables that plumb export --format parquet writes.
#include "sql/sql.hpp"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/ticker.hpp"
#include "cli/write_tables.hpp"

namespace {

using namespace plumb::cli;

struct SqlArguments {
    std::vector<std::string> words; // the query, unless one is named; then recordings
    std::string shipped;
    bool list = false;
    bool json = false;
    bool csv = false;
};

/// Gone with all that is in it.
class ScratchFolder {
  public:
    static plumb::Result<std::unique_ptr<ScratchFolder>> make() {
        plumb::Result<std::string> path = make_scratch_folder("plumb-sql");
        return path ? plumb::Result(std::unique_ptr<ScratchFolder>(new ScratchFolder(*std::move(path)))) : path.error();
    }
    ~ScratchFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    ScratchFolder(const ScratchFolder&) = delete;
    ScratchFolder& operator=(const ScratchFolder&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

  private:
    explicit ScratchFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

plumb::Result<plumb::sql::QueryTable> answer(const std::string& query, const std::vector<std::string>& recordings) {
    if (const plumb::Status ready = plumb::sql::ready(); !ready) {
        return ready.error(); // before minutes are spent on tables
    }
    catch_interrupts();
    const auto folder = ScratchFolder::make();
    if (!folder) {
        return folder.error();
    }
    const plumb::Result<WrittenTables> written = write_tables(recordings, "parquet", (*folder)->path());
    if (!written) {
        return written.error();
    }
    const Ticker ticker("asking DuckDB");
    return plumb::sql::query(query, (*folder)->path(), written->recordings, interrupted());
}

std::string answer_text(const plumb::sql::QueryTable& table, const SqlArguments& arguments) {
    return arguments.json  ? json_of(table)
           : arguments.csv ? csv_of(table)
                           : text_of(table, {stdout_has_color(), stdout_columns()});
}

int list_queries(const SqlArguments& arguments) {
    plumb::sql::QueryTable table{{{"query", {}}, {"answers", {}}}, {}};
    for (const plumb::sql::ShippedQuery& query : plumb::sql::shipped_queries()) {
        table.rows.push_back({query.name, query.meaning});
    }
    std::cout << answer_text(table, arguments);
    return exit_ok;
}

/// Takes it off the words. Empty: none was given.
std::string query_of(SqlArguments& arguments) {
    for (const plumb::sql::ShippedQuery& query : plumb::sql::shipped_queries()) {
        if (query.name == arguments.shipped) {
            return query.text;
        }
    }
    if (arguments.words.empty()) {
        return {};
    }
    std::string query = arguments.words.front();
    arguments.words.erase(arguments.words.begin());
    return query;
}

int sql(SqlArguments& arguments) {
    if (arguments.list) {
        return list_queries(arguments);
    }
    const std::string query = query_of(arguments);
    if (query.empty() || arguments.words.empty()) {
        return say_error(
            "plumb sql takes a query and a recording: plumb sql \"select * from steps\" run.plumb, or --query with a "
            "name of plumb sql --list",
            arguments.json);
    }
    const plumb::Result<plumb::sql::QueryTable> table = answer(query, arguments.words);
    if (!table) {
        return say_error(table.error().message, arguments.json, "\n"); // DuckDB points at a place in the query
    }
    std::cout << answer_text(*table, arguments);
    if (!arguments.shipped.empty() && !table->only_sampled.empty()) {
        std::cerr << "note: timed in sampled steps only, which this query leaves out: " << table->only_sampled
                  << "; plumb report has them.\n";
    }
    return exit_ok;
}

} // namespace

void add_sql(CLI::App& root, int& exit_code) {
    auto arguments = std::make_shared<SqlArguments>();
    CLI::App& app =
        *root.add_subcommand("sql", "Ask recordings in SQL, by DuckDB: views scopes, steps, bricks, collectives");
    app.add_option("query", arguments->words, "A select, then recordings (.plumb); with --query recordings alone")
        ->type_name("SELECT FILE...");
    std::vector<std::string> names;
    for (const plumb::sql::ShippedQuery& query : plumb::sql::shipped_queries()) {
        names.push_back(query.name);
    }
    app.add_option("--query", arguments->shipped, "Instead of a select: one that comes with plumb")
        ->check(CLI::IsMember(names));
    app.add_flag("--list", arguments->list, "List the queries that come with plumb");
    CLI::Option* json = app.add_flag("--json", arguments->json, "As a JSON list, an object a row");
    app.add_flag("--csv", arguments->csv, "As CSV, a header row first")->excludes(json);
    app.callback([arguments, &exit_code] { exit_code = sql(*arguments); });
}
