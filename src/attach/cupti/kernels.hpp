// SPDX-License-Identifier: Apache-2.0
// Kernels of a CUDA program by CUPTI, where its user asked for them: `plumb run --kernels` names this library in
// CUDA_INJECTION64_PATH, and the driver loads it. A thread of ours opens CUPTI for a short window now and then, names what ran in it
// by the kernel rules, and writes it on a lane for each stream. Thread rule: any thread.
#pragma once

namespace plumb::attach::cupti {

/// The driver's call, once a process, inside cuInit().
void open_door();

/// Whether kernels are traced in this process: then no graph is instrumented, since CUPTI would time the instruments.
[[nodiscard]] bool traces_kernels() noexcept;

} // namespace plumb::attach::cupti
