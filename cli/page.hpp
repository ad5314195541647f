// SPDX-License-Identifier: Apache-2.0
// One answer as an HTML page (`plumb compare --page`). One thread: main's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plumb/answer.hpp"

namespace plumb::cli {

/// Whether the page has a picture of it by itself; of one recording it has `plumb page`.
[[nodiscard]] inline bool has_page(std::string_view answer) {
    return answer == "compare" || answer == "diverge" || answer == "ranks";
}

/// Error: that of writing.
[[nodiscard]] Status write_answer_page(const std::string& output, const std::vector<std::string>& inputs,
                                       const Answer& answer);

} // namespace plumb::cli
