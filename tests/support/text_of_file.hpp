// SPDX-License-Identifier: Apache-2.0
// For tests: what a file holds.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace plumb::support {

/// All bytes; empty where there is no such file. A block at a time: an iterator takes a call per byte in tests, which are not optimised.
[[nodiscard]] inline std::string text_of_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

} // namespace plumb::support
