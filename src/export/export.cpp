// SPDX-License-Identifier: Apache-2.0
#include "export/export.hpp"
#include "export/window.hpp"

#include <string>

#include "plumb/results.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {

Status exporting::write_as(std::string_view format, const SampleFeed& source, std::ostream& out) {
    const Result<const Format*> wanted = format_of(format);
    return wanted.ok() ? (*wanted)->write(source, out) : wanted.error();
}

Result<const exporting::Format*> exporting::format_of(std::string_view format) {
    std::string known;
    for (const Format* each : formats()) {
        if (format == each->name) {
            return each;
        }
        known += (known.empty() ? "" : ", ") + std::string(each->name);
    }
    return Error{ErrorCode::not_found, "there is no format \"" + std::string(format) + "\"; there are " + known};
}

const std::vector<ExportFormat>& known_formats() {
    static const std::vector<ExportFormat> all = [] {
        std::vector<ExportFormat> made;
        for (const exporting::Format* format : exporting::formats()) {
            made.push_back({format->name, format->meaning});
        }
        return made;
    }();
    return all;
}

Status export_recording(const std::string& recording, std::string_view format, std::ostream& out) {
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    return run.ok() ? exporting::write_as(format, exporting::samples_of(*run), out) : run.error();
}

Result<std::vector<std::string>> export_recording(const std::string& recording, std::string_view format,
                                                  std::ostream& out, const ExportWindow& window) {
    const Result<const exporting::Format*> wanted = exporting::format_of(format);
    if (!wanted.ok()) {
        return wanted.error();
    }
    const Result<recording::RecordedRun> run = recording::open_run(recording);
    if (!run.ok()) {
        return run.error();
    }
    Result<exporting::WindowedFeed> part = exporting::window_of(*run, window, (*wanted)->most_slices);
    if (!part.ok()) {
        return part.error();
    }
    const Status written = (*wanted)->write(part->feed, out);
    if (!written.ok()) {
        return written.error();
    }
    if (part->slices != nullptr && *part->slices == 0) {
        part->notes.emplace_back("nothing of the recording lies in this window");
    }
    return std::move(part->notes);
}

} // namespace plumb
