// SPDX-License-Identifier: Apache-2.0
// What trace and export share: a recording, or a window of it, streamed into a file or standard output. One thread: main's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace plumb::cli {

struct WriteArguments {
    std::string recording;
    std::string output = "-";
    bool json = false;
    std::string format;
    std::string steps, layers; // as given; empty: all
    std::vector<std::string> tracks;
    std::uint64_t slowest = 0;

    [[nodiscard]] bool has_window() const {
        return !steps.empty() || !layers.empty() || !tracks.empty() || slowest != 0;
    }
};

/// The options of both, behind their recordings; `arguments` must live as long as the command, and name the default format.
void add_write_options(CLI::App& app, WriteArguments& arguments, const std::vector<std::string>& formats);

/// Exit code. With `json` one line about what was written; standard output must then be free for it.
int write_output(const WriteArguments& arguments);

} // namespace plumb::cli
