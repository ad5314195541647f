// SPDX-License-Identifier: Apache-2.0
// Puts the rooflines of rows and the speed of light of phases into a report that has its rows and peaks. Pure; any thread.
#pragma once

#include "plumb/results.hpp"

namespace plumb::analysis {

void add_rooflines(Report& report);

} // namespace plumb::analysis
