// SPDX-License-Identifier: Apache-2.0
// Preloaded into the program by the smoke test; the program itself knows nothing of the virtual GPU.
#include "truths/virtual_kernels.hpp"
#include "fingerprint/cuda/virtual_kernels_testing.hpp"

namespace {

[[gnu::constructor]] void teach() {
    static const plumb::fingerprint::VirtualKernels fingerprints;
    gpu_check::teach_virtual_kernels();
}

} // namespace
