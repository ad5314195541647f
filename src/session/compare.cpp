// SPDX-License-Identifier: Apache-2.0
// The file-level functions of compare.hpp: read recordings, hand their figures to the analysis.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "analysis/compare.hpp"
#include "plumb/compare.hpp"
#include "plumb/numerics.hpp"
#include "recording/reader.hpp"
#include "resolve/reader_source.hpp"

namespace plumb {
namespace {

using RecordingId = std::array<std::uint64_t, 2>;

struct ReadRun {
    analysis::NamedRun run;
    RecordingId id{};
};

Result<ReadRun> read_run(const std::string& path) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    resolve::ReaderSource source(*reader);
    Result<analysis::RunFigures> figures = analysis::gather_run(source);
    if (!figures.ok()) {
        return Error{figures.error().code, path + ": " + figures.error().message};
    }
    const recording::Metadata& metadata = reader->metadata();
    return ReadRun{{path, *std::move(figures)}, {metadata.recording_id[0], metadata.recording_id[1]}};
}

Result<std::vector<analysis::NamedRun>> read_side(const std::vector<std::string>& paths,
                                                  std::map<RecordingId, std::string>& known) {
    std::vector<analysis::NamedRun> runs;
    for (const std::string& path : paths) {
        Result<ReadRun> run = read_run(path);
        if (!run.ok()) {
            return run.error();
        }
        // The same run twice would look like two runs that agree.
        const auto [at, fresh] = known.emplace(run->id, path);
        if (!fresh) {
            return Error{ErrorCode::invalid_argument, path + " is the same run as " + at->second +
                                                          "; give each recording once, and record another run"};
        }
        runs.push_back(std::move(run->run));
    }
    return runs;
}

Status check_options(const CompareOptions& options) {
    if (!(options.same_band > 0 && options.same_band < 1)) {
        return Error{ErrorCode::invalid_argument, "the band of SAME lies between 0 and 100 %; 1 % is usual"};
    }
    if (!(options.false_alarm > 0 && options.false_alarm < 0.5)) {
        return Error{ErrorCode::invalid_argument, "the chance of a false alarm lies between 0 and 0.5; 0.01 is usual"};
    }
    return {};
}

/// Passes only where tensors were compared and none differs in a single bit.
void judge_fingerprints(const std::string& base, const std::string& changed, GateResult& gate) {
    DivergeOptions exact;
    exact.exact = true;
    const Result<DivergeReport> report = diverge_recordings(base, changed, exact);
    if (!report.ok()) {
        gate.outcome = GateOutcome::undecided;
        gate.sentence = report.error().message;
        return;
    }
    const std::string compared = std::to_string(report->compared) + " tensors compared";
    if (report->same()) {
        gate.outcome = GateOutcome::passed;
        gate.sentence = compared + ", all equal";
        return;
    }
    // What one side lacks is a difference, too.
    gate.outcome = GateOutcome::failed;
    gate.sentence = compared + ", " + std::to_string(report->divergent) + " differ, " +
                    std::to_string(report->only_in_a.tensors + report->only_in_b.tensors) +
                    " on one side only; plumb diverge shows where";
}

Result<std::vector<std::string>> recordings_in(const std::string& folder) {
    std::vector<std::string> paths;
    std::error_code failed;
    for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
         entry.increment(failed)) {
        std::error_code ignored;
        if (entry->path().extension() == ".plumb" && entry->is_regular_file(ignored)) {
            paths.push_back(entry->path().string());
        }
    }
    if (failed) {
        return Error{ErrorCode::not_found,
                     "cannot read the folder " + folder + ": " + failed.message() + "; give one that holds recordings"};
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

} // namespace

Result<Comparison> compare_recordings(const std::vector<std::string>& base, const std::vector<std::string>& changed,
                                      const std::vector<Gate>& gates, const CompareOptions& options) {
    if (Status status = check_options(options); !status.ok()) {
        return status.error();
    }
    if (base.empty() || changed.empty()) {
        return Error{ErrorCode::invalid_argument, "a comparison needs a recording on both sides; 5 a side are usual"};
    }
    std::map<RecordingId, std::string> known;
    const Result<std::vector<analysis::NamedRun>> before = read_side(base, known);
    if (!before.ok()) {
        return before.error();
    }
    const Result<std::vector<analysis::NamedRun>> after = read_side(changed, known);
    if (!after.ok()) {
        return after.error();
    }
    Comparison comparison = analysis::compare_runs(*before, *after, gates, options);
    for (GateResult& gate : comparison.gates) {
        if (gate.gate.fingerprint && comparison.comparable) {
            judge_fingerprints(base.front(), changed.front(), gate);
        }
    }
    return comparison;
}

Result<History> history_of(const std::string& folder, const CompareOptions& options) {
    if (Status status = check_options(options); !status.ok()) {
        return status.error();
    }
    const Result<std::vector<std::string>> paths = recordings_in(folder);
    if (!paths.ok()) {
        return paths.error();
    }
    std::vector<analysis::NamedRun> runs;
    std::vector<std::string> unreadable;
    for (const std::string& path : *paths) {
        Result<ReadRun> run = read_run(path);
        if (run.ok()) {
            runs.push_back(std::move(run->run));
        } else {
            unreadable.push_back(run.error().message);
        }
    }
    if (runs.empty()) {
        return Error{ErrorCode::not_found,
                     "no recording in " + folder + " can be read" +
                         (unreadable.empty() ? "; it holds no *.plumb file" : ": " + unreadable[0])};
    }
    History history = analysis::history_of_runs(std::move(runs), options);
    history.notes.insert(history.notes.end(), unreadable.begin(), unreadable.end());
    return history;
}

} // namespace plumb
