// SPDX-License-Identifier: Apache-2.0
#include "answers/compare/compare.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

#include "analysis/compare_gate.hpp"
#include "analysis/compare_key.hpp"
#include "answers/answer.hpp"
#include "numerics/diverge.hpp"
#include "recording/recorded_run.hpp"
#include "stats/sample_check.hpp"

namespace plumb {
namespace {

using RecordingId = std::array<std::uint64_t, 2>;

struct ReadRun {
    analysis::NamedRun run;
    RecordingId id{};
};

Result<ReadRun> read_run(const std::string& path) {
    const Result<recording::RecordedRun> recorded = recording::open_run(path);
    if (!recorded.ok()) {
        return recorded.error();
    }
    Result<analysis::RunFigures> figures = analysis::gather_run(*recorded);
    if (!figures.ok()) {
        return Error{figures.error().code, path + ": " + figures.error().message};
    }
    const recording::Metadata& metadata = recorded->facts->metadata;
    return ReadRun{{path, *std::move(figures)}, {metadata.recording_id[0], metadata.recording_id[1]}};
}

/// That each field of --ignore-key is one that a run has, or could have.
Status check_ignored(const std::vector<std::string>& ignored, const Comparison& compared) {
    const std::string field = analysis::unknown_field(ignored, compared);
    if (field.empty()) {
        return {};
    }
    std::string fields;
    for (const auto& [name, value] : compared.key) {
        fields += (fields.empty() ? "" : ", ") + name;
    }
    for (const KeyDifference& difference : compared.differences) {
        fields += (fields.empty() ? "" : ", ") + difference.field;
    }
    return Error{ErrorCode::invalid_argument,
                 "no run has the field \"" + field + "\" that --ignore-key names; they have " + fields};
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

struct Agreement {
    GateOutcome outcome = GateOutcome::undecided;
    std::string sentence;
    std::uint64_t compared = 0;
};

/// Passes only where tensors were compared and all bits of every one of them are known to agree.
Agreement agreement_of(const std::string& base, const std::string& changed) {
    DivergeOptions exact;
    exact.exact = true;
    const Result<DivergeReport> report = diverge_recordings(base, changed, exact);
    if (!report.ok()) {
        return {GateOutcome::undecided, report.error().message, 0};
    }
    const std::string compared = std::to_string(report->compared) + " tensors compared";
    if (!report->same()) {
        // What one side lacks is a difference, too.
        return {GateOutcome::failed,
                compared + ", " + std::to_string(report->divergent) + " differ, " +
                    std::to_string(report->only_in_a.tensors + report->only_in_b.tensors) +
                    " on one side only; plumb diverge shows where",
                report->compared};
    }
    if (report->compared == 0 || report->identical != report->compared) {
        return {GateOutcome::undecided,
                compared + ", but the bits of " + std::to_string(report->compared - report->identical) +
                    " are not known; record with tensors=all, prefill cut alike on both sides",
                report->compared};
    }
    if (const std::uint64_t left = report->chunking + report->other_sequences; left != 0) {
        return {GateOutcome::undecided,
                compared + ", all equal, but " + std::to_string(left) +
                    " have no counterpart: their sequence is in one run only, or prefill was cut otherwise",
                report->compared};
    }
    return {GateOutcome::passed, compared + ", all equal", report->compared};
}

/// Run i of one side against run i of the other; the worst of them is the answer.
void judge_fingerprints(const std::vector<std::string>& base, const std::vector<std::string>& changed,
                        GateResult& gate) {
    const std::size_t pairs = std::min(base.size(), changed.size());
    gate.outcome = GateOutcome::undecided;
    if (pairs < stats::fewest_runs) {
        gate.sentence = "at least 3 runs a side are needed";
        return;
    }
    std::uint64_t compared = 0;
    std::string unknown;
    for (std::size_t i = 0; i < pairs; ++i) {
        const Agreement found = agreement_of(base[i], changed[i]);
        compared += found.compared;
        const std::string sentence = "runs " + std::to_string(i + 1) + ": " + found.sentence;
        if (found.outcome == GateOutcome::failed) {
            gate.outcome = GateOutcome::failed;
            gate.sentence = sentence;
            return;
        }
        if (found.outcome == GateOutcome::undecided && unknown.empty()) {
            unknown = sentence;
        }
    }
    gate.outcome = unknown.empty() ? GateOutcome::passed : GateOutcome::undecided;
    gate.sentence = unknown.empty() ? std::to_string(compared) + " tensors compared in " + std::to_string(pairs) +
                                          " pairs of runs, all equal"
                                    : unknown;
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
    if (const Status known_fields = check_ignored(options.ignored_fields, comparison); !known_fields.ok()) {
        return known_fields.error();
    }
    for (GateResult& gate : comparison.gates) {
        if (gate.gate.fingerprint && comparison.comparable && !comparison.one_step) {
            judge_fingerprints(base, changed, gate);
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
    std::vector<analysis::RunFigures> figures;
    std::vector<std::string> unreadable;
    std::vector<std::string> copies;
    std::map<RecordingId, std::string> known;
    for (const std::string& path : *paths) {
        Result<ReadRun> run = read_run(path);
        if (!run.ok()) {
            unreadable.push_back(run.error().message);
            continue;
        }
        const auto [at, fresh] = known.emplace(run->id, path);
        if (!fresh) {
            copies.push_back(path + " is left out: it is the same run as " + at->second + ".");
            continue;
        }
        figures.push_back(run->run.figures);
        runs.push_back(std::move(run->run));
    }
    if (runs.empty()) {
        return Error{ErrorCode::not_found,
                     "no recording in " + folder + " can be read" +
                         (unreadable.empty() ? "; it holds no *.plumb file" : ": " + unreadable[0])};
    }
    Comparison keys;
    analysis::compare_keys(figures, {}, options.ignored_fields, keys);
    if (const Status known_fields = check_ignored(options.ignored_fields, keys); !known_fields.ok()) {
        return known_fields.error();
    }
    History history = analysis::history_of_runs(std::move(runs), options);
    history.notes.insert(history.notes.end(), copies.begin(), copies.end());
    history.notes.insert(history.notes.end(), unreadable.begin(), unreadable.end());
    return history;
}

namespace {

/// Two recordings as they stand, or any number after --base and --new, or a folder alone.
Status take_sides(const std::vector<std::string>& files, CompareQuestion& question) {
    const bool named = !question.base.empty() || !question.changed.empty();
    if (!question.history.empty()) {
        if (!named && files.empty() && question.gates.empty()) {
            return {};
        }
    } else if (!named && files.size() == 2) {
        question.base = {files[0]};
        question.changed = {files[1]};
        return {};
    } else if (files.empty() && !question.base.empty() && !question.changed.empty()) {
        return {};
    }
    return Error{ErrorCode::invalid_argument,
                 "say what to compare: plumb compare base.plumb new.plumb, or --base A... --new B... with at "
                 "least 3 runs a side, or --history FOLDER"};
}

Result<std::vector<Gate>> gates_of(const std::vector<std::string>& texts) {
    std::vector<Gate> gates;
    for (const std::string& text : texts) {
        Result<Gate> gate = parse_gate(text);
        if (!gate.ok()) {
            return gate.error();
        }
        gates.push_back(*std::move(gate));
    }
    return gates;
}

Result<answers::AnswerPointer> ask_compare(const std::vector<std::string>& files, const OptionValues& values) {
    constexpr unsigned indent = 2;
    Result<CompareQuestion> question = answers::options_from<CompareQuestion>(values);
    if (!question.ok()) {
        return question.error();
    }
    if (const Status status = take_sides(files, *question); !status.ok()) {
        return status.error();
    }
    const CompareOptions options{.same_band = question->same / 100, .ignored_fields = question->ignored};
    if (!question->history.empty()) {
        return answers::answer_of(history_of(question->history, options), indent);
    }
    const Result<std::vector<Gate>> gates = gates_of(question->gates);
    return gates.ok()
               ? answers::answer_of(compare_recordings(question->base, question->changed, *gates, options), indent)
               : gates.error();
}

} // namespace

const answers::Entry& compare_answer() {
    static const answers::Entry entry{{"compare",
                                       "Compare runs: what became faster or slower, with gates",
                                       {{"recordings", "Two recordings: the base and the new one", false, true}},
                                       answers::options_of<CompareQuestion>(),
                                       "As JSON (schema plumb.compare/1; plumb.history/1 with --history)",
                                       "As Markdown, for a pull request",
                                       {"plumb.compare/1", "plumb.history/1"}},
                                      {answers::document_of<Comparison>(), answers::document_of<History>()},
                                      ask_compare};
    return entry;
}

} // namespace plumb
