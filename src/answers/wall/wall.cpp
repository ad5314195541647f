// SPDX-License-Identifier: Apache-2.0
#include "answers/wall/wall.hpp"

#include "answers/reading.hpp"

namespace plumb {
namespace {

Result<answers::Pending<WallReport>> begin(answers::Reading& reading, const WallOptions& options) {
    return reading.wall(options);
}

} // namespace

Result<WallReport> read_wall(const std::vector<std::string>& files, const WallOptions& options) {
    return answers::read_one<WallReport>(files.front(),
                                         [&](answers::Reading& reading) { return begin(reading, options); });
}

const answers::Entry& wall_answer() {
    static const answers::Entry entry = answers::joining_entry<WallOptions, WallReport, begin>(
        "wall", "Show who was busy and who waited for whom: host-bound or device-bound, and what there is to gain");
    return entry;
}

} // namespace plumb
