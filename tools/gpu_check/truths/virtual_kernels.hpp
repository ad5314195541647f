// SPDX-License-Identifier: Apache-2.0
// What the check's kernels do on the virtual GPU. Test-only.
#pragma once

namespace gpu_check {

/// Teaches it the kernels of kernels.ptx, until its next reset().
void teach_virtual_kernels();

} // namespace gpu_check
