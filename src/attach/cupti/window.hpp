// SPDX-License-Identifier: Apache-2.0
// What one window of CUPTI saw, put in order: which kernels are one whole step or one whole replay. A step that the window's edge cut
// has some of its kernels alone, and counted as a step it would seem fast. Pure functions of what the caller owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cuda/cupti.hpp"

namespace plumb::attach::cupti {

/// A launch, in the order in which launches were told.
struct KernelLaunch {
    std::uint32_t correlation = 0;
    std::uint64_t thread = 0;
    std::uint64_t step_plus_one = 0; // 0: the thread was in no step
};

/// Kernels that ran one after the other in the order of their begins: of one step, of one replay, or a single one.
struct KernelSequence {
    std::uint64_t step_plus_one = 0; // 0: none, or one that is not whole
    std::vector<std::uint32_t> kernels;
};

struct WindowKernels {
    std::vector<KernelSequence> sequences;
    std::vector<std::uint64_t> slowed; // step_plus_one of each step that launched something, once, in order
};

/// Which launches may lack kernels.
struct WindowGaps {
    std::size_t opening = 0, closing = 0; // numbers of launches: those before the one and from the other on
    std::vector<std::uint32_t> unusable;  // those of these correlations
    bool any = false;                     // any one may
};

/// How many of the launches a device that lags behind has ended, at most: those up to the newest that has a kernel.
[[nodiscard]] std::size_t ended_launches(const std::vector<KernelLaunch>& launches,
                                         const std::vector<backends::cuda::TracedKernel>& kernels);

/// `kernels` in the order of their begins.
[[nodiscard]] WindowKernels arrange(const std::vector<backends::cuda::TracedKernel>& kernels,
                                    const std::vector<KernelLaunch>& launches, const WindowGaps& gaps);

} // namespace plumb::attach::cupti
