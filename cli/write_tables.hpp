// SPDX-License-Identifier: Apache-2.0
// Recordings as the tables of a format of several, a file each below a folder: what export and sql share. Main's thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plumb/result.hpp"

namespace plumb::cli {

struct WrittenTables {
    std::uint64_t bytes = 0;
    std::vector<std::pair<std::string, std::string>> recordings; // what the tables call each, and its file
};

/// Makes the folders that are missing; a file is there whole or not at all, and replaces that of an earlier export of the same
/// recording. Interrupts end it with an error.
Result<WrittenTables> write_tables(const std::vector<std::string>& recordings, const std::string& format,
                                   const std::string& folder);

} // namespace plumb::cli
