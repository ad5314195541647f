// SPDX-License-Identifier: Apache-2.0
// How fast something on the device's own stream moves bytes.
#pragma once

#include <functional>

#include "results.hpp"
#include "truths/gpu.hpp"

namespace gpu_check {

/// GB/s of so many runs after a first one that does not count.
Spread rates_of(Gpu& gpu, double bytes, int repeats, const std::function<void()>& enqueue);

} // namespace gpu_check
