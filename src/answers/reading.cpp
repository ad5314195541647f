// SPDX-License-Identifier: Apache-2.0
#include "answers/reading.hpp"

#include "analysis/report_builder.hpp"

namespace plumb::answers {

Result<Report> read_report(const std::string& path, const ReportOptions& options) {
    const Result<recording::RecordedRun> run = recording::open_run(path);
    return run.ok() ? analysis::build_report(*run, options) : run.error();
}

} // namespace plumb::answers
