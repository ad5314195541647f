// SPDX-License-Identifier: Apache-2.0
#include "answers/reading.hpp"

#include "analysis/report_builder.hpp"
#include "recording/reader.hpp"

namespace plumb::answers {

Result<Report> read_report(const std::string& path, const ReportOptions& options) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    return analysis::build_report(*reader, options, {});
}

} // namespace plumb::answers
