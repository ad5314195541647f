// SPDX-License-Identifier: Apache-2.0
// What `plumb run` adds to a command that is over at once. One thread.
#pragma once

#include <vector>

#include "plumb/result.hpp"

namespace bench::attach {

struct Starts {
    std::vector<double> wall_ms; // one for each pair
    std::vector<double> cpu_ms;  // user and system, of all its processes
};
struct StartPairs {
    Starts alone; // /bin/true
    Starts under; // the same under `plumb run`
};

/// The first of a pair alternates. Errors: failed, when a process does not start or end well.
plumb::Result<StartPairs> measure_starts(int pairs);

} // namespace bench::attach
