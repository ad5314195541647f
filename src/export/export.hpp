// SPDX-License-Identifier: Apache-2.0
// The formats in which every sample of a recording can be written. `src/export/<name>.cpp` writes one and defines
//     namespace plumb::exporting { const Format& <name>_format(); }
// which the generated registry lists (PLUMB_EXPORTS); the command line, help and completion follow from it.
// Data in, stream out, memory bounded by the tables of the recording; pure but for the stream; one thread per call.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "export/sample_feed.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"

namespace plumb::exporting {

/// An output that refuses data gives an error, never a shorter file unsaid.
using WriteFormat = Status (*)(const SampleFeed& source, std::ostream& out);

/// One file of a format that writes several.
struct FormatTable {
    const char* name;
    WriteFormat write;
};

struct Format {
    const char* name;
    const char* meaning;
    WriteFormat write; // null: see tables
    /// Without a window the command writes whole steps evenly spaced, so many samples at most; 0: all.
    std::uint64_t most_slices = 0;
    std::vector<FormatTable>
        tables{}; // each goes into a file of its own below a folder: <table>/host=…/rank=…/<recording>.<name>
};

/// In the order in which help lists them.
[[nodiscard]] const std::vector<const Format*>& formats();

/// Error not_found names the formats there are.
[[nodiscard]] Result<const Format*> format_of(std::string_view name);
/// Error invalid_argument where the format is of several files.
[[nodiscard]] Status write_as(std::string_view format, const SampleFeed& source, std::ostream& out);

/// One table of a format of several. Errors: not_found where there is no such format or table.
[[nodiscard]] Status write_table(std::string_view format, std::string_view table, const SampleFeed& source,
                                 std::ostream& out);
[[nodiscard]] std::vector<ExportFile> files_of(const Format& format, const recording::Metadata& run);

/// A word of 32 digits for one recording, the same whenever it is exported.
[[nodiscard]] std::string recording_word(const recording::Metadata& run);
/// The rank as a number; none where the recording says none, or a word.
[[nodiscard]] std::optional<std::int64_t> rank_number(const recording::Metadata& run);

} // namespace plumb::exporting
