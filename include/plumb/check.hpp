// SPDX-License-Identifier: Apache-2.0
// The name that tensor.hpp had in version 0.1; the next version leaves it out. Nothing of its own, no thread rule.
#pragma once

#include "plumb/tensor.hpp"
