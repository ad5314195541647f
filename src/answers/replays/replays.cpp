// SPDX-License-Identifier: Apache-2.0
#include "answers/replays/replays.hpp"

#include "answers/answer.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {

Result<ReplayReport> read_replays(const std::vector<std::string>& files, const ReplayOptions&) {
    const Result<recording::RecordedRun> run = recording::open_run(files.front());
    return run.ok() ? analysis::build_replays(*run) : run.error();
}

const answers::Entry& replays_answer() {
    static const answers::Entry entry = answers::entry_of<ReplayOptions, ReplayReport, read_replays>(
        "replays", "Show what became of captured graphs: replays, eager steps, padding, node check, costs");
    return entry;
}

} // namespace plumb
