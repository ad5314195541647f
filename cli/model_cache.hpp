// SPDX-License-Identifier: Apache-2.0
// The small model that `plumb decode` uses when none is given: made once per user, kept in the cache folder.
#pragma once

#include <string>

#include "plumb/result.hpp"

namespace plumb::cli {

/// Its path ($XDG_CACHE_HOME or ~/.cache, else the temporary folder), after making it if it is missing or damaged.
[[nodiscard]] Result<std::string> cached_model();

} // namespace plumb::cli
