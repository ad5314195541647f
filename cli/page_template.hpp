// SPDX-License-Identifier: Apache-2.0
// The page that web/ builds, as the command holds it. Constant; any thread.
#pragma once

#include <string_view>

namespace plumb::cli {

/// With @PLUMB_DATA@ once, where the data goes.
[[nodiscard]] std::string_view page_template();

} // namespace plumb::cli
