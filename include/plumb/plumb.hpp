// SPDX-License-Identifier: Apache-2.0
// Everything an engine needs to be profiled: include this one.
#pragma once

#include "plumb/budget.hpp"
#include "plumb/invariants.hpp"
#include "plumb/layers.hpp"
#include "plumb/record.hpp"
#include "plumb/results.hpp"
#include "plumb/session.hpp"
