// SPDX-License-Identifier: Apache-2.0
// The keys of the spec string, as a table. Constant; any thread.
#pragma once

#include <vector>

namespace plumb {

/// One row of the table of keys: docs/reference/configuration.md is made from it.
struct ConfigKey {
    const char* key;
    const char* value;   // grammar
    const char* meaning; // one sentence
};
const std::vector<ConfigKey>& config_keys();

} // namespace plumb
