// SPDX-License-Identifier: Apache-2.0
// The tables of scopes and of steps, a file each.
#include "base/utf8.hpp"
#include "export/export.hpp"
#include "export/parquet_rows.hpp"
#include "export/tables.hpp"

namespace plumb::exporting {

namespace {

using tables::Recording;

/// Of a file: what its table is, what the run says it is, and when it began, for who wants to put several on one line of time.
parquet::KeyValues facts_of(const recording::RunFacts& run, const Recording& recording, const char* schema) {
    parquet::KeyValues all = {{"plumb.schema", schema},
                              {"plumb.recording", recording.word()},
                              {"plumb.start_realtime_ns", std::to_string(recording.start())}};
    for (const auto& [key, value] : run.descriptions) {
        all.emplace_back(base::valid_utf8("plumb.description." + key), base::valid_utf8(value));
    }
    return all;
}

/// `describe(to, recording, row)` says the columns.
template <class Row>
class TableOfRows {
  public:
    TableOfRows(const recording::RunFacts& facts, std::ostream& out)
        : run_(facts), recording_(facts), sink_(out), file_(sink_, columns_of(rows_, recording_)) {}

    [[nodiscard]] Recording& recording() { return recording_; }

    void add(const Row& row) {
        parquet::Values values(rows_);
        describe(values, recording_, row);
        rows_.end_row();
        if (rows_.full()) {
            rows_.put(file_);
        }
    }
    /// False: the output takes no more.
    [[nodiscard]] bool good() const { return sink_.good() && file_.good(); }

    /// `read`: how reading the rows ended.
    [[nodiscard]] Status finish(const Status& read, const char* schema) {
        if (!rows_.empty()) {
            rows_.put(file_);
        }
        file_.finish(rows_.begin_column(), facts_of(run_, recording_, schema));
        const Status written = sink_.flush();
        if (!written.ok() || !read.ok() || file_.good()) {
            return written.ok() ? read : written;
        }
        return Error{ErrorCode::out_of_memory, "out of memory for a row group; give the process 300 MiB more"};
    }

  private:
    static std::vector<parquet::ParquetColumn> columns_of(parquet::RowGroup& rows, const Recording& recording) {
        parquet::Schema schema(rows);
        describe(schema, recording, Row{});
        return rows.columns();
    }

    const recording::RunFacts& run_;
    Recording recording_;
    TextSink sink_;
    parquet::RowGroup rows_;
    parquet::ParquetWriter file_;
};

Status write_scopes(const SampleFeed& source, std::ostream& out) {
    TableOfRows<tables::ScopeRow> table(*source.facts, out);
    const Status read = tables::for_each_scope(source, table.recording(), [&](const tables::ScopeRow& row) {
        table.add(row);
        return table.good();
    });
    return table.finish(read, "plumb.scopes/1");
}

Status write_steps(const SampleFeed& source, std::ostream& out) {
    TableOfRows<tables::StepRow> table(*source.facts, out);
    const Status read = tables::for_each_step(source, table.recording(), [&](const tables::StepRow& row) {
        table.add(row);
        return table.good();
    });
    return table.finish(read, "plumb.steps/1");
}

} // namespace

const Format& parquet_format() {
    static const Format format{
        "parquet",
        "Tables of scopes and of steps for DuckDB, Spark and the like: a file of each for every recording, below the folder "
        "that -o names",
        nullptr,
        0,
        {{"scopes", write_scopes}, {"steps", write_steps}}};
    return format;
}

} // namespace plumb::exporting
