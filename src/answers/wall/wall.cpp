// SPDX-License-Identifier: Apache-2.0
#include "answers/wall/wall.hpp"

#include "analysis/wall_builder.hpp"
#include "answers/answer.hpp"
#include "recording/reader.hpp"
#include "resolve/reader_source.hpp"

namespace plumb {

Result<WallReport> read_wall(const std::vector<std::string>& files, const WallOptions& options) {
    Result<recording::Reader> reader = recording::Reader::open(files.front());
    if (!reader.ok()) {
        return reader.error();
    }
    resolve::ReaderSource source(*reader);
    return analysis::build_wall(source, options);
}

const answers::Entry& wall_answer() {
    static const answers::Entry entry = answers::entry_of<WallOptions, WallReport, read_wall>(
        "wall", "Show who was busy and who waited for whom: host-bound or device-bound, and what there is to gain");
    return entry;
}

} // namespace plumb
