// SPDX-License-Identifier: Apache-2.0
#include "answers/wall/wall.hpp"

#include "analysis/wall_builder.hpp"
#include "answers/answer.hpp"
#include "recording/recorded_run.hpp"

namespace plumb {

Result<WallReport> read_wall(const std::vector<std::string>& files, const WallOptions& options) {
    const Result<recording::RecordedRun> run = recording::open_run(files.front());
    return run.ok() ? analysis::build_wall(*run, options) : run.error();
}

const answers::Entry& wall_answer() {
    static const answers::Entry entry = answers::entry_of<WallOptions, WallReport, read_wall>(
        "wall", "Show who was busy and who waited for whom: host-bound or device-bound, and what there is to gain");
    return entry;
}

} // namespace plumb
