// SPDX-License-Identifier: Apache-2.0
// Takes out of a run's metadata and descriptions what may tell where and by whom it was run. Pure; no thread rule.
#pragma once

#include <string>
#include <string_view>

#include "recording/recording.hpp"

namespace plumb::recording {

/// Host, command line, user and paths become "redacted". The ring's path keeps its file name, which a reader looks up where
/// rings lie, so that a killed run can still be recovered; paths in the comparability key keep theirs. The settings stay as
/// they are: who writes them leaves paths out.
void redact(Metadata& metadata);
/// Of the file its last part stays; the source text goes, since compilers write paths into it.
void redact(KernelInfo& kernel);
/// What a program said of itself: of a path its last part, else all of it.
[[nodiscard]] std::string redacted_description(std::string_view value);

/// "x" of "/models/x" and of "/models/x/"; "/" of "/".
[[nodiscard]] inline std::string_view last_part(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') {
        path.remove_suffix(1);
    }
    return path.size() > 1 ? path.substr(path.rfind('/') + 1) : path;
}

} // namespace plumb::recording
