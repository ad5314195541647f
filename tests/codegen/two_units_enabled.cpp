// SPDX-License-Identifier: Apache-2.0
#include "two_units.hpp"

int enabled_unit(plumb::Profiler& prof) {
#include "two_units.inc"
}
