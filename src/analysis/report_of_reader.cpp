// SPDX-License-Identifier: Apache-2.0
#include "analysis/report_builder.hpp"
#include "resolve/reader_source.hpp"

namespace plumb::analysis {

Result<Report> build_report(recording::Reader& reader, const ReportOptions& options, const resolve::Cut& cut) {
    resolve::ReaderSource source(reader);
    return build_report(source, options, cut);
}

} // namespace plumb::analysis
