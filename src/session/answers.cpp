// SPDX-License-Identifier: Apache-2.0
// What invariants.hpp and wall.hpp say of recordings in files: reads them, hands them to the room that knows.
#include <algorithm>
#include <set>
#include <utility>

#include "analysis/call_counts.hpp"
#include "analysis/invariants.hpp"
#include "analysis/replay_builder.hpp"
#include "analysis/report_builder.hpp"
#include "analysis/wall_builder.hpp"
#include "plumb/invariants.hpp"
#include "plumb/wall.hpp"
#include "recording/reader.hpp"
#include "resolve/reader_source.hpp"

namespace plumb {
namespace {

Result<analysis::Checked> read_run(const std::string& path, const Invariants& invariants) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    analysis::Checked run;
    run.path = path;
    std::copy_n(reader->metadata().recording_id, 2, run.recording_id);
    Result<Report> report = analysis::build_report(*reader, {}, {});
    if (!report.ok()) {
        return report.error();
    }
    run.report = std::move(*report);
    resolve::ReaderSource source(*reader);
    if (!invariants.calls.empty()) {
        Result<std::vector<analysis::CallCount>> calls =
            analysis::count_calls(source, invariants.phase, invariants.calls);
        if (!calls.ok()) {
            return calls.error();
        }
        run.calls = std::move(*calls);
    }
    if (invariants.node_check) {
        Result<ReplayReport> replays = analysis::build_replays(source);
        if (!replays.ok()) {
            return replays.error();
        }
        run.replays = std::move(*replays);
    }
    return run;
}

} // namespace

Result<WallReport> wall_recording(const std::string& path, const WallOptions& options) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    resolve::ReaderSource source(*reader);
    return analysis::build_wall(source, options);
}

Result<CheckReport> check_recordings(const std::vector<std::string>& paths, const Invariants& invariants) {
    if (const Status valid = analysis::validate(invariants); !valid.ok()) {
        return valid.error();
    }
    CheckReport report;
    std::vector<Figure> periods;
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    for (const std::string& path : paths) {
        const Result<analysis::Checked> run = read_run(path, invariants);
        if (!run.ok()) {
            return run.error();
        }
        if (!seen.emplace(run->recording_id[0], run->recording_id[1]).second) {
            return Error{
                ErrorCode::invalid_argument,
                path + " is a recording that was named before; name each run once, or its variation is too small"};
        }
        for (CheckRow& row : analysis::check_one(*run, invariants)) {
            report.rows.push_back(std::move(row));
        }
        periods.push_back(analysis::mean_period(run->report, invariants.phase));
    }
    if (invariants.variation) {
        report.rows.push_back(analysis::check_variation(periods, invariants));
    }
    report.verdict = analysis::verdict_of(report.rows);
    return report;
}

} // namespace plumb
