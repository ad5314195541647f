// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a flag: the first asks long work to end cleanly, the second ends the program as usual. Process-wide.
#pragma once

#include <atomic>

namespace plumb::cli {

/// From here on SIGINT and SIGTERM set the flag.
void catch_interrupts();
[[nodiscard]] const std::atomic<bool>& interrupted();

} // namespace plumb::cli
