// SPDX-License-Identifier: Apache-2.0
// The file-level functions of results.hpp: open a recording, hand it to the room that knows.
#include "plumb/results.hpp"
#include "export/export.hpp"
#include "recording/recorded_run.hpp"
#include "recording/recovery.hpp"

namespace plumb {
namespace {

using Exporter = Status (*)(const exporting::SampleFeed&, std::ostream&);

Status run_exporter(const std::string& path, std::ostream& out, Exporter exporter) {
    const Result<recording::RecordedRun> run = recording::open_run(path);
    return run.ok() ? exporter(exporting::samples_of(*run), out) : run.error();
}

} // namespace

Status write_chrome_trace(const std::string& recording, std::ostream& out) {
    return run_exporter(recording, out, exporting::chrome_trace);
}

Status export_jsonl(const std::string& recording, std::ostream& out) {
    return run_exporter(recording, out, exporting::jsonl);
}

Status export_csv(const std::string& recording, std::ostream& out) {
    return run_exporter(recording, out, exporting::csv);
}

Result<RecoverSummary> recover_recording(const std::string& path) {
    const Result<recording::Recovery> recovered = recording::recover(path);
    if (!recovered.ok()) {
        return recovered.error();
    }
    RecoverSummary summary;
    summary.records_recovered = recovered->records;
    summary.rings = recovered->ring_removed ? 1 : 0;
    summary.notes = recovered->notes;
    return summary;
}

} // namespace plumb
