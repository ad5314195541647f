// SPDX-License-Identifier: Apache-2.0
// The public functions that libplumb has and the analysis library does.
#include "asking/analysis_table.hpp"
#include "asking/answer_data.hpp"

namespace plumb {

using asking::analysis;
using asking::AnalysisPointer;

Result<Report> report_recording(const std::string& path, const ReportOptions& options) {
    const Result<AnalysisPointer> table = analysis();
    return table.ok() ? (*table)->report_of_file(path, options) : table.error();
}

std::string render_text(const Report& report, const TextOptions& options) {
    const Result<AnalysisPointer> table = analysis();
    return table.ok() ? (*table)->report_text(report, options) : table.error().message + '\n';
}

std::string render_json(const Report& report) {
    const Result<AnalysisPointer> table = analysis();
    return table.ok() ? (*table)->report_json(report) : std::string();
}

const std::vector<AnswerInfo>& known_answers() {
    static const std::vector<AnswerInfo> none;
    const Result<AnalysisPointer> table = analysis();
    return table.ok() ? (*table)->known_answers() : none;
}

Result<Answer> ask(std::string_view name, const std::vector<std::string>& files, const OptionValues& options) {
    const Result<AnalysisPointer> table = analysis();
    return table.ok() ? (*table)->ask(name, files, options) : table.error();
}

Result<std::string> json_schema(std::string_view schema) {
    const Result<AnalysisPointer> table = analysis();
    return table.ok() ? (*table)->json_schema(schema) : table.error();
}

std::string json_reference() {
    const Result<AnalysisPointer> table = analysis();
    return table.ok() ? (*table)->json_reference() : std::string();
}

Answer::~Answer() { delete data_; }
std::string Answer::text(const TextOptions& options) const { return data_->text(options); }
std::string Answer::markdown() const { return data_->markdown(); }
std::string Answer::json() const { return data_->json(); }
Outcome Answer::outcome() const noexcept { return data_->outcome(); }

} // namespace plumb
