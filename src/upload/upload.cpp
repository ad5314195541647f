// SPDX-License-Identifier: Apache-2.0
#include "upload/upload.hpp"

#include <chrono>
#include <random>

#include "export/tables.hpp"
#include "upload/database.hpp"
#include "upload/packed_body.hpp"
#include "upload/row_binary.hpp"

namespace plumb::upload {

namespace {

namespace tables = exporting::tables;

constexpr std::size_t block_bytes = std::size_t{1} << 20; // of rows before they are packed

/// Names this attempt: rows of another one are never taken for its own.
std::uint64_t new_upload() {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

/// Rows of one table, in batches.
template <class Row>
class RowsOf {
  public:
    RowsOf(const Database& database, const char* table, const tables::Recording& recording, std::uint64_t upload,
           UploadProgress& progress)
        : database_(database), table_(table), recording_(recording), upload_(upload), progress_(progress) {
        describe(columns_, recording, Row{});
    }

    /// False: it failed.
    bool add(const Row& row) {
        binary_.begin_row(upload_);
        describe(binary_, recording_, row);
        ++rows_;
        if (binary_.rows().size() >= block_bytes) {
            pack();
        }
        if (rows_ % rows_of_a_batch == 0) {
            send();
        }
        return status_.ok();
    }
    /// Sends the rest, and compares what is in the table with what was sent. `read`: how reading the rows ended.
    Status finish(const Status& read) {
        send();
        if (!status_.ok() || !read.ok()) {
            return status_.ok() ? read : status_;
        }
        const Result<std::string> found =
            database_.run("select count(), " + columns_.sums() + " from " + table_ + " where recording = '" +
                          recording_.word() + "' and upload = " + std::to_string(upload_) + " format TSV");
        if (!found) {
            return found.error();
        }
        const std::string expected = sums_text();
        if (*found != expected) {
            return Error{ErrorCode::failed,
                         database_.where() + " has other rows in " + table_ + " than were sent (count and sums: " +
                             with_commas(found->substr(0, found->find('\n')).substr(0, 300)) + " instead of " +
                             with_commas(expected) + "); nothing is committed, try again"};
        }
        return {};
    }
    [[nodiscard]] std::uint64_t rows() const { return rows_; }

  private:
    void pack() {
        if (status_.ok() && !packed_.add(binary_.rows())) {
            status_ =
                Error{ErrorCode::out_of_memory, "out of memory for a batch of rows; give the process 100 MiB more"};
        }
        binary_.clear();
    }
    void send() {
        if (!binary_.rows().empty()) {
            pack();
        }
        if (status_.ok() && !packed_.blocks().empty()) {
            status_ = database_.insert(std::string("insert into ") + table_ + " (upload, " + columns_.names() +
                                           ") format RowBinary",
                                       packed_.blocks());
            progress_.bytes += packed_.blocks().size();
        }
        packed_.clear();
    }
    static std::string with_commas(std::string numbers) {
        std::replace(numbers.begin(), numbers.end(), '\t', ',');
        return numbers;
    }
    [[nodiscard]] std::string sums_text() const {
        std::string text = std::to_string(rows_);
        for (std::size_t column = 0; column < columns_.size(); ++column) {
            // Of a sum of signed numbers a database says the sign.
            const std::uint64_t sum = rows_ == 0 ? 0 : binary_.sums()[column];
            text += '\t' + std::to_string(static_cast<std::int64_t>(sum));
        }
        return text;
    }
    const Database& database_;
    const char* table_;
    const tables::Recording& recording_;
    std::uint64_t upload_;
    UploadProgress& progress_;
    ColumnNames columns_;
    RowBinary binary_;
    PackedBody packed_;
    std::uint64_t rows_ = 0;
    Status status_;
};

std::string quoted(std::string_view text) {
    std::string quoted = "'";
    for (const char character : text) {
        quoted += character == '\'' || character == '\\' ? std::string{'\\', character} : std::string(1, character);
    }
    return quoted + '\'';
}

Status drop_earlier(const Database& database, const std::string& partition) {
    for (const char* table : {"plumb_uploads_local", "scopes_local", "steps_local"}) {
        const Result<std::string> dropped =
            database.run(std::string("alter table ") + table + " drop partition " + partition);
        if (!dropped) {
            return dropped.error();
        }
    }
    return {};
}

Status commit(const Database& database, const tables::Recording& recording, std::uint64_t upload,
              const Uploaded& done) {
    using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
    const std::int64_t now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    const std::string rank = recording.rank() == exporting::no_integer ? "NULL" : std::to_string(recording.rank());
    const Result<std::string> row =
        database.run("insert into plumb_uploads_local (upload, recording, host, rank, scopes, steps, at) values (" +
                     std::to_string(upload) + ", '" + recording.word() + "', " +
                     quoted(base::valid_utf8(recording.host())) + ", " + rank + ", " + std::to_string(done.scopes) +
                     ", " + std::to_string(done.steps) + ", " + std::to_string(now) + ")");
    return row.ok() ? Status()
                    : Error{row.error().code,
                            row.error().message +
                                "; all rows are there, but whether they are committed is not known: try again"};
}

} // namespace

Result<Uploaded> upload_recording(const std::string& recording, const Target& target, const std::atomic<bool>& stop,
                                  UploadProgress& progress) {
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    return run.ok() ? upload_samples(exporting::samples_of(*run), target, stop, progress) : run.error();
}

Result<Uploaded> upload_samples(const exporting::SampleFeed& source, const Target& target,
                                const std::atomic<bool>& stop, UploadProgress& progress, const HttpLimits& limits) {
    tables::Recording words(*source.facts);
    const std::optional<std::int64_t> rank = exporting::rank_number(source.facts->metadata);
    const HttpServer& shard = target.shard_of(rank);
    const Database database(shard, target.database, limits, stop);
    const std::uint64_t upload = new_upload();
    Uploaded done{words.word(), text_of(shard)};

    Status status = drop_earlier(database, "('" + words.word() + "', " + std::to_string(rank.value_or(-1)) + ')');
    if (status.ok()) {
        RowsOf<tables::ScopeRow> rows(database, "scopes_local", words, upload, progress);
        status = rows.finish(
            tables::for_each_scope(source, words, [&](const tables::ScopeRow& row) { return rows.add(row); }));
        done.scopes = rows.rows();
    }
    if (status.ok()) {
        RowsOf<tables::StepRow> rows(database, "steps_local", words, upload, progress);
        status = rows.finish(
            tables::for_each_step(source, words, [&](const tables::StepRow& row) { return rows.add(row); }));
        done.steps = rows.rows();
    }
    if (status.ok() && stop.load()) {
        status = Error{ErrorCode::failed, "interrupted"};
    }
    if (status.ok()) {
        static const std::atomic<bool> never{false}; // an interrupt comes before it or behind it
        status = commit(Database(shard, target.database, limits, never), words, upload, done);
    }
    return status.ok() ? Result<Uploaded>(std::move(done)) : Result<Uploaded>(status.error());
}

} // namespace plumb::upload
