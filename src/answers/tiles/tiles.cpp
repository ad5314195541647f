// SPDX-License-Identifier: Apache-2.0
#include "answers/tiles/tiles.hpp"

#include "analysis/tiles.hpp"
#include "answers/answer.hpp"
#include "recording/reader.hpp"

namespace plumb {

Result<TileReport> read_tiles(const std::vector<std::string>& files, const TileOptions& options) {
    const Result<recording::Reader> reader = recording::Reader::open(files.front());
    if (!reader.ok()) {
        return reader.error();
    }
    analysis::TileInput input = analysis::tiles_of(*reader->facts());
    input.ended_early = !reader->closed() && !reader->being_written();
    return analysis::build_tiles(input, options);
}

const answers::Entry& tiles_answer() {
    static const answers::Entry entry = answers::entry_of<TileOptions, TileReport, read_tiles>(
        "tiles", "Show the tiles of kernels: cost by level, a map, the slow ones");
    return entry;
}

} // namespace plumb
