// SPDX-License-Identifier: Apache-2.0
// What libplumb asks of this library: its functions, in one table.
#include "analysis/report_builder.hpp"
#include "analysis/tiles.hpp"
#include "answers/answer.hpp"
#include "answers/report/report.hpp"
#include "asking/analysis_table.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {
namespace {

/// The run goes on: its rings are flushed, and the other cores belong to it.
Result<recording::Reader> open_live(const asking::LiveRecording& live) {
    recording::ReadOptions options;
    options.merge_ring = false;
    options.ahead = recording::ReadAhead::never;
    return live.path.empty() ? recording::Reader::from_bytes(live.bytes) : recording::Reader::open(live.path, options);
}

Result<Report> report_of_live(const asking::LiveRecording& live, const ReportOptions& options) {
    Result<recording::Reader> reader = open_live(live);
    if (!reader.ok()) {
        return reader.error();
    }
    recording::subtract(live.cleared, *reader->facts());
    return analysis::build_report(recording::run_of(std::move(*reader)), options, live.cut);
}

Result<TileReport> tiles_of_live(const asking::LiveRecording& live, const TileOptions& options) {
    const Result<recording::Reader> reader = open_live(live);
    return reader.ok() ? Result<TileReport>(analysis::build_tiles(analysis::tiles_of(*reader->facts()), options))
                       : reader.error();
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
        .tiles_of_live = tiles_of_live,
        .report_of_file = read_report,
        .report_text = report_text,
        .report_json = report_json,
        .known_answers = answers::known_answers,
        .ask = answers::ask,
        .json_schema = answers::json_schema,
        .json_reference = answers::json_reference,
    };
    return &table;
}
