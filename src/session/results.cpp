// SPDX-License-Identifier: Apache-2.0
// The file-level functions of results.hpp: open a recording, hand it to the room that knows.
#include <algorithm>
#include <limits>

#include "analysis/path_builder.hpp"
#include "analysis/replay_builder.hpp"
#include "analysis/report_builder.hpp"
#include "export/export.hpp"
#include "plumb/results.hpp"
#include "recording/reader.hpp"
#include "recording/recovery.hpp"
#include "resolve/reader_source.hpp"
#include "resolve/resolve.hpp"

namespace plumb {
namespace {

/// A recording as the exporters want it.
class RecordingSamples final : public exporting::SampleSource {
  public:
    explicit RecordingSamples(recording::Reader& reader) : reader_(reader), records_(reader) {}

    [[nodiscard]] const recording::Metadata& metadata() const override { return reader_.metadata(); }
    [[nodiscard]] const std::vector<recording::TrackInfo>& tracks() const override { return reader_.tracks(); }
    [[nodiscard]] const std::vector<recording::NameInfo>& names() const override { return reader_.names(); }
    [[nodiscard]] const std::vector<recording::GraphInfo>& graphs() const override { return reader_.graphs(); }
    [[nodiscard]] const std::vector<recording::KernelInfo>& kernels() const override { return reader_.kernels(); }
    [[nodiscard]] const std::vector<std::string>& notes() const override { return reader_.notes(); }

    [[nodiscard]] std::int64_t origin_ns() const override {
        std::int64_t first = std::numeric_limits<std::int64_t>::max();
        for (const recording::ClockPair& pair : reader_.clock_pairs()) {
            first = std::min(first, pair.monotonic_ns);
        }
        return first == std::numeric_limits<std::int64_t>::max() ? 0 : first;
    }

    Status for_each_sample(const exporting::SampleSink& sink) override {
        resolve::ResolveOptions options;
        options.warmup_steps = reader_.metadata().warmup_steps;
        bool wanted = true;
        return resolve::resolve_samples(records_, options, [&](const resolve::ResolvedBatch& batch) {
            wanted =
                wanted && sink({batch.samples, batch.submissions, batch.nodes, batch.dependencies, batch.launches});
        });
    }

    Status for_each_check(const exporting::TensorSink& sink) override {
        return reader_.for_each_check([&sink](recording::TensorCheck&& check) { return sink(check); });
    }

  private:
    recording::Reader& reader_;
    resolve::ReaderSource records_;
};

using Exporter = Status (*)(exporting::SampleSource&, std::ostream&);

Status run_exporter(const std::string& path, std::ostream& out, Exporter exporter) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    RecordingSamples samples(*reader);
    return exporter(samples, out);
}

} // namespace

Result<Report> report_recording(const std::string& path, const ReportOptions& options) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    return analysis::build_report(*reader, options, {});
}

Result<ReplayReport> replays_recording(const std::string& path) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    resolve::ReaderSource source(*reader);
    return analysis::build_replays(source);
}

Result<PathReport> path_recording(const std::string& path, const PathOptions& options) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    resolve::ReaderSource source(*reader);
    return analysis::build_path(source, options);
}

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
