// SPDX-License-Identifier: Apache-2.0
// What trace and export share: a recording streamed into a file or standard output. One thread: main's.
#pragma once

#include <string>

namespace plumb::cli {

struct WriteArguments {
    std::string recording;
    std::string output = "-";
    bool json = false;
};

/// Exit code. With `json` one line about what was written; standard output must then be free for it.
int write_output(const WriteArguments& arguments, const std::string& format);

} // namespace plumb::cli
