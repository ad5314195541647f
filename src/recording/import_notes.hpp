// SPDX-License-Identifier: Apache-2.0
// What `plumb import` says of a trace are descriptions with keys of their own: "import 1", "import 2", … are sentences, "known by
// rms_norm" says by what that brick is known, "trace" names the file that it was made of: who writes and who shows them meet here.
#pragma once

#include <string>
#include <string_view>

namespace plumb::recording {

inline const std::string trace_key = "trace";
inline const std::string import_note_key = "import ";
inline const std::string known_by_key = "known by ";

[[nodiscard]] inline bool is_import_note(std::string_view key) {
    return key.size() > import_note_key.size() && key.starts_with(import_note_key) &&
           key.find_first_not_of("0123456789", import_note_key.size()) == std::string_view::npos;
}
/// The brick; empty where the key says no such thing.
[[nodiscard]] inline std::string_view known_brick(std::string_view key) {
    return key.starts_with(known_by_key) ? key.substr(known_by_key.size()) : std::string_view();
}

} // namespace plumb::recording
