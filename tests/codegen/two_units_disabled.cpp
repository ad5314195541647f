// SPDX-License-Identifier: Apache-2.0
#define PLUMB_DISABLE 1
#include "two_units.hpp"

int disabled_unit(plumb::Profiler& prof) {
#include "two_units.inc"
}
