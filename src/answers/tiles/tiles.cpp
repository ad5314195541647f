// SPDX-License-Identifier: Apache-2.0
#include "answers/tiles/tiles.hpp"

#include "answers/reading.hpp"

namespace plumb {
namespace {

Result<answers::Pending<TileReport>> begin(answers::Reading& reading, const TileOptions& options) {
    const recording::RunFacts& facts = reading.facts();
    analysis::TileInput input = analysis::tiles_of(facts);
    input.ended_early = !facts.closed && !facts.being_written;
    return answers::Pending<TileReport>(
        [input = std::move(input), options] { return analysis::build_tiles(input, options); });
}

} // namespace

Result<TileReport> read_tiles(const std::vector<std::string>& files, const TileOptions& options) {
    return answers::read_one<TileReport>(files.front(),
                                         [&](answers::Reading& reading) { return begin(reading, options); });
}

const answers::Entry& tiles_answer() {
    static const answers::Entry entry = answers::joining_entry<TileOptions, TileReport, begin>(
        "tiles", "Show the tiles of kernels: cost by level, a map, the slow ones");
    return entry;
}

} // namespace plumb
