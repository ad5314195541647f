// SPDX-License-Identifier: Apache-2.0
// What libplumb asks of this library: its functions, in one table.
#include "analysis/report_builder.hpp"
#include "answers/commands.hpp"
#include "answers/reading.hpp"
#include "answers/report/report.hpp"
#include "asking/analysis_table.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {
namespace {

/// The run goes on: its rings are flushed, and the other cores belong to it.
Result<recording::RecordedRun> run_of_live(const asking::LiveRecording& live) {
    recording::ReadOptions options;
    options.merge_ring = false;
    options.ahead = recording::ReadAhead::never;
    Result<recording::Reader> reader =
        live.path.empty() ? recording::Reader::from_bytes(live.bytes) : recording::Reader::open(live.path, options);
    if (!reader.ok()) {
        return reader.error();
    }
    recording::subtract(live.cleared, *reader->facts());
    return recording::run_of(*std::move(reader));
}

Result<Report> report_of_live(const asking::LiveRecording& live, const ReportOptions& options) {
    const Result<recording::RecordedRun> run = run_of_live(live);
    return run.ok() ? analysis::build_report(*run, options, live.cut) : Result<Report>(run.error());
}

Result<Answer> ask_of_live(const asking::LiveRecording& live, std::string_view name, const OptionValues& options) {
    const Result<recording::RecordedRun> run = run_of_live(live);
    return run.ok() ? answers::ask_of_run(name, *run, live.cut, options) : Result<Answer>(run.error());
}

std::string report_text(const Report& report, const TextOptions& options) {
    return page::text_of(page_of(report, options), options.color);
}

std::string report_json(const Report& report) { return page::json_of(schema_of(report), report, 1); }

} // namespace
} // namespace plumb

const plumb::asking::AnalysisTable* plumb_analysis_table() noexcept {
    using namespace plumb;
    static constexpr asking::AnalysisTable table = {
        .version = PLUMB_BUILD_VERSION,
        .report_of_live = report_of_live,
        .ask_of_live = ask_of_live,
        .report_of_file = read_report,
        .report_text = report_text,
        .report_json = report_json,
        .known_answers = answers::known_answers,
        .ask = answers::ask,
        .answer_of_selftest = answers::answer_of_selftest,
        .json_schema = answers::json_schema,
        .json_reference = answers::json_reference,
    };
    return &table;
}
