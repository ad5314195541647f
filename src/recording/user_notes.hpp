// SPDX-License-Identifier: Apache-2.0
// Notes by the user are descriptions with keys of their own: "note 1", "note 2", …: who writes and who shows them meet here.
#pragma once

#include <string>
#include <string_view>

namespace plumb::recording {

inline const std::string user_note_key = "note ";

[[nodiscard]] inline bool is_user_note(std::string_view key) {
    return key.size() > user_note_key.size() && key.substr(0, user_note_key.size()) == user_note_key &&
           key.find_first_not_of("0123456789", user_note_key.size()) == std::string_view::npos;
}

} // namespace plumb::recording
