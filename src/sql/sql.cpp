// SPDX-License-Identifier: Apache-2.0
#include "sql/sql.hpp"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/utf8.hpp"
#include "sql/duckdb.hpp"

namespace plumb::sql {

namespace {

/// Interrupts a database once somebody wants it to stop: its own calls do not return before.
class QueryWatch {
  public:
    QueryWatch(Duckdb& database, const std::atomic<bool>& stop)
        : thread_([this, &database, &stop] {
              std::unique_lock lock(mutex_);
              while (!done_) {
                  if (stop.load()) {
                      database.interrupt(); // again and again: one that comes between two statements is lost
                  }
                  changed_.wait_for(lock, std::chrono::milliseconds(20));
              }
          }) {}
    QueryWatch(const QueryWatch&) = delete;
    QueryWatch& operator=(const QueryWatch&) = delete;
    ~QueryWatch() {
        {
            const std::lock_guard lock(mutex_);
            done_ = true;
        }
        changed_.notify_one();
        thread_.join();
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool done_ = false; // guarded by mutex_
    std::thread thread_;
};

std::string quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char character : text) {
        quoted += character == '\'' ? "''" : std::string(1, character);
    }
    return quoted + '\'';
}

std::string names_of(const Names& recordings) {
    std::string made = "create table recordings (recording varchar, file varchar);\n";
    for (const auto& [recording, file] : recordings) {
        made += "insert into recordings values (" + quoted(recording) + ", " + quoted(base::valid_utf8(file)) + ");\n";
    }
    return made;
}

/// What of a path would be a pattern stands for itself.
std::string no_pattern(const std::string& path) {
    std::string made;
    for (const char character : path) {
        const bool special = character == '*' || character == '?' || character == '[';
        made += special ? std::string("[") + character + ']' : std::string(1, character);
    }
    return made;
}

std::string views_of(const std::string& folder, const Names& recordings) {
    const auto table = [&folder](const char* name) {
        return std::string("create view ") + name + " as from read_parquet(" +
               quoted(no_pattern(folder) + '/' + name + "/*/*/*.parquet") + ", hive_partitioning = false);\n";
    };
    return table("scopes") + table("steps") +
           "create view bricks as select recording, host, rank, phase, brick, category, kind, leaf, source, count(*) as calls,"
           " sum(duration)::bigint as total, avg(duration) as mean, min(duration) as shortest, max(duration) as longest,"
           " sum(bytes) as bytes, sum(flops) as flops"
           " from scopes where kind in ('scope', 'lap', 'span') and not warmup and not contains(flags, 'sampled')"
           " group by all;\n"
           "create view collectives as from scopes where category = 'collective';\n" +
           names_of(recordings);
}

/// A queue or a captured graph that is timed in some steps only makes those steps sampled, with all that it timed.
constexpr char only_sampled[] =
    "select string_agg(brick, ', ' order by brick) from (select brick from scopes"
    " where kind in ('scope', 'lap', 'span') and not warmup group by brick having bool_and(contains(flags, 'sampled')))";

} // namespace

Status ready() {
    const Result<Duckdb> database = Duckdb::open();
    return database ? Status() : database.error();
}

Result<QueryTable> query(const std::string& text, const std::string& folder, const Names& recordings,
                         const std::atomic<bool>& stop) {
    Result<Duckdb> database = Duckdb::open();
    if (!database) {
        return database.error();
    }
    const QueryWatch watch(*database, stop);
    const Status made = database->run(views_of(folder, recordings));
    Result<QueryTable> table = made ? database->query(text) : Result<QueryTable>(made.error());
    if (table) {
        const Result<QueryTable> bricks = database->query(only_sampled);
        if (bricks && !bricks->rows.empty() && !bricks->rows[0].empty()) {
            table->only_sampled = bricks->rows[0][0].value_or("");
        }
    }
    if (stop.load()) {
        return Error{ErrorCode::failed, "interrupted"};
    }
    return table;
}

} // namespace plumb::sql
