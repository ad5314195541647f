// SPDX-License-Identifier: Apache-2.0
// The vendor's tracer, where it is found: last, and in a process of its own, because its slowdown outlives it.
#include <dlfcn.h>

#include <filesystem>

#include "gpu.hpp"
#include "sections.hpp"

namespace gpu_check {

void run_cupti(const ResultFile& results, const Options& options) {
    static_cast<void>(results);
    static_cast<void>(options);
    throw NotApplicable{"not read by this build"};
}

} // namespace gpu_check
