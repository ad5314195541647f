// SPDX-License-Identifier: Apache-2.0
#include "answers/report/report.hpp"

#include "answers/answer.hpp"
#include "answers/reading.hpp"

namespace plumb {
namespace {

Result<Report> read(const std::vector<std::string>& files, const ReportQuestion& question) {
    ReportOptions options;
    options.phase = question.phase;
    options.recording_warmup = !question.warmup;
    options.warmup_steps = question.warmup.value_or(options.warmup_steps);
    options.brick_layers = question.layers;
    return report_recording(files.front(), options);
}

} // namespace

Result<Report> report_recording(const std::string& path, const ReportOptions& options) {
    return answers::read_report(path, options);
}

std::string render_text(const Report& report, const TextOptions& options) {
    return page::text_of(page_of(report, options), options.color);
}

std::string render_json(const Report& report) { return page::json_of(schema_of(report), report, 1); }

const answers::Entry& report_answer() {
    static const answers::Entry entry = answers::entry_of<ReportQuestion, Report, read>(
        "report", "Show where the time of a recorded run went, brick by brick");
    return entry;
}

} // namespace plumb
