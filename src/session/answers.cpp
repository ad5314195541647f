// SPDX-License-Identifier: Apache-2.0
// What wall.hpp says of a recording in a file: reads it, hands it to the room that knows.
#include "analysis/wall_builder.hpp"
#include "plumb/wall.hpp"
#include "recording/reader.hpp"
#include "resolve/reader_source.hpp"

namespace plumb {

Result<WallReport> wall_recording(const std::string& path, const WallOptions& options) {
    Result<recording::Reader> reader = recording::Reader::open(path);
    if (!reader.ok()) {
        return reader.error();
    }
    resolve::ReaderSource source(*reader);
    return analysis::build_wall(source, options);
}

} // namespace plumb
