// SPDX-License-Identifier: Apache-2.0
// The page that web/ builds, as the command holds it. Constant; any thread.
#pragma once

#include <string>

namespace plumb::cli {

/// With @PLUMB_DATA@ once, where the data goes. Unpacked with each call.
[[nodiscard]] std::string page_template();

} // namespace plumb::cli
