// SPDX-License-Identifier: Apache-2.0
// Where the vendor's tracer lies on a machine that nobody prepared.
#pragma once

#include "backends/cuda/cupti.hpp"
#include "sections.hpp"

namespace gpu_check {

/// The library given by --cupti, else those of toolkits and of pip's package in whatever python3 there is.
plumb::backends::cuda::CuptiOptions cupti_options(const Options& options);

} // namespace gpu_check
