// SPDX-License-Identifier: Apache-2.0
// Counters of this process by the operating system. One file per system implements it (processor_counters_linux.cpp,
// processor_counters_other.cpp); CMake chooses. Threads that begin later are counted where a counted thread began them.
#pragma once

#include <memory>

#include "plumb/counters.hpp"

namespace plumb::base {

/// Never null: where the system allows none, its totals are empty and the reason says what to do.
[[nodiscard]] std::unique_ptr<CounterReader> open_processor_counters();

} // namespace plumb::base
