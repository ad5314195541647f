// SPDX-License-Identifier: Apache-2.0
// The formats in which every sample of a recording can be written. `src/export/<name>.cpp` writes one and defines
//     namespace plumb::exporting { const Format& <name>_format(); }
// which the generated registry lists (PLUMB_EXPORTS); the command line, help and completion follow from it.
// Data in, stream out, memory bounded by the tables of the recording; pure but for the stream; one thread per call.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <vector>

#include "export/sample_feed.hpp"
#include "plumb/result.hpp"

namespace plumb::exporting {

struct Format {
    const char* name;
    const char* meaning;
    /// An output that refuses data gives an error, never a shorter file unsaid.
    Status (*write)(const SampleFeed& source, std::ostream& out);
    /// Without a window the command writes whole steps evenly spaced, so many samples at most; 0: all.
    std::uint64_t most_slices = 0;
};

/// In the order in which help lists them.
[[nodiscard]] const std::vector<const Format*>& formats();

/// Error not_found names the formats there are.
[[nodiscard]] Result<const Format*> format_of(std::string_view format);
[[nodiscard]] Status write_as(std::string_view format, const SampleFeed& source, std::ostream& out);

} // namespace plumb::exporting
