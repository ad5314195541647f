// SPDX-License-Identifier: Apache-2.0
// What run_selftest() measures. Any thread.
#pragma once

#include "asking/selftest.hpp"

namespace plumb {

[[nodiscard]] SelfTest measure_selftest();

} // namespace plumb
