// SPDX-License-Identifier: Apache-2.0
#include "answers/findings/findings.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "analysis/path_builder.hpp"
#include "answers/findings/detect.hpp"
#include "answers/reading.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {
namespace {

using findings::FoundInPhase;
using findings::RunAnswers;
using findings::StepWatch;

FindingsOfRun findings_of(const RunAnswers& run) {
    FindingsOfRun out;
    for (const WallPhase& phase : run.wall.phases) {
        if (phase.steps == 0) {
            continue;
        }
        FoundInPhase found(run, phase);
        findings::find_waits(found);
        findings::find_odd_layers(found);
        findings::find_slow_bricks(found); // after what explains a part of them
        findings::find_ping_pong(found);
        findings::find_graph_waste(found);
        findings::find_slow_warm_up(found);
        findings::find_own_cost(found);
        findings::find_steal(found);
        std::move(found.findings.begin(), found.findings.end(), std::back_inserter(out.findings));
        for (NotLookedFor& missing : found.not_looked_for) {
            missing.reason = std::string(phase_word(phase.phase)) + ": " + missing.reason;
            out.not_looked_for.push_back(std::move(missing));
        }
    }
    std::stable_sort(out.findings.begin(), out.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
    out.notes = run.wall.notes;
    return out;
}

Result<answers::Pending<FindingsReport>> begin(answers::Reading& reading, const FindingsOptions&) {
    ReportOptions wanted;
    wanted.brick_layers = true;
    analysis::ReportReader& reader = reading.report();
    const std::size_t number = reader.ask(wanted);
    answers::Pending<WallReport> take_wall = reading.wall({});
    auto& path = reading.join<analysis::PathReader>(reading.facts(), PathOptions{});
    auto& replays = reading.join<analysis::ReplayReader>(reading.facts());
    auto& watch = reading.join<StepWatch>();
    return answers::Pending<FindingsReport>(
        [&reader, &path, &replays, &watch, number, take_wall = std::move(take_wall)]() -> Result<FindingsReport> {
            const Result<WallReport> wall = take_wall();
            if (!wall.ok()) {
                return wall.error();
            }
            const Report report = reader.take(number);
            const LayerReport layers = layers_of(report);
            const ReplayReport graphs = replays.take();
            const Result<PathReport> step = path.take();
            FindingsReport out;
            out.runs.push_back(findings_of({report, *wall, layers, graphs, step, watch.steps()}));
            return out;
        });
}

/// Whether the recordings say that they are ranks of one job.
bool of_one_job(const std::vector<std::string>& files) {
    std::set<std::string> ranks;
    std::set<std::uint64_t> worlds;
    for (const std::string& file : files) {
        const Result<recording::RecordedRun> run = recording::open_run(file);
        if (!run.ok() || run->facts->metadata.rank.empty()) {
            return false;
        }
        ranks.insert(run->facts->metadata.rank);
        worlds.insert(run->facts->metadata.world);
    }
    return ranks.size() > 1 && ranks.size() == files.size() && worlds.size() == 1;
}

std::string name_of(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

} // namespace

Result<FindingsReport> read_findings(const std::vector<std::string>& files) {
    FindingsReport all;
    for (const std::string& file : files) {
        Result<FindingsReport> one =
            answers::read_one<FindingsReport>(file, [&](answers::Reading& reading) { return begin(reading, {}); });
        if (!one.ok() && files.size() > 1 && recording::open_run(file).ok()) { // it has no step, say; the others may
            all.runs.push_back({name_of(file), {}, {}, {one.error().message}, false});
            continue;
        }
        if (!one.ok()) {
            return one.error();
        }
        one->runs.front().recording = files.size() > 1 ? name_of(file) : "";
        all.runs.push_back(std::move(one->runs.front()));
    }
    if (of_one_job(files)) {
        const Result<RanksReport> ranks = read_ranks(files, {});
        if (!ranks.ok()) {
            return ranks.error();
        }
        all.together = findings::find_stragglers(*ranks);
    }
    return all;
}

const answers::Entry& findings_answer() {
    static const answers::Entry entry = [] {
        answers::Entry made = answers::joining_entry<FindingsOptions, FindingsReport, begin>(
            "findings", "Say what is worth doing: ranked claims, with evidence and the most that each could gain");
        made.info.files = {{"recordings", "Recordings (.plumb)", true, true}};
        made.info.markdown = "As Markdown, for a comment on a change";
        made.ask = [](const std::vector<std::string>& files, const OptionValues&) {
            return answers::answer_of(read_findings(files));
        };
        return made;
    }();
    return entry;
}

} // namespace plumb
