// SPDX-License-Identifier: Apache-2.0
// Preloaded into the program by the smoke test; the program itself knows nothing of the virtual GPU.
#include "truths/virtual_kernels.hpp"
#include <cstdlib>

#include "fingerprint/cuda/virtual_kernels_testing.hpp"
#include "virtual_gpu/control.hpp"

namespace {

[[gnu::constructor]] void teach() {
    static const plumb::fingerprint::VirtualKernels fingerprints;
    gpu_check::teach_virtual_kernels();
    if (std::getenv("PLUMB_CHECK_NO_COMPILER") != nullptr) { // the first module is text
        plumb::vgpu::fail("cuModuleLoadData", plumb::vgpu::CuResult::jit_compiler_not_found);
    }
}

} // namespace
