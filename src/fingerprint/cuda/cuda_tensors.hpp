// SPDX-License-Identifier: Apache-2.0
// Fingerprints of tensors that CUDA streams work on. Eager: one kernel behind the work before it, whose result goes into
// a slot of pinned memory; the slots of a context are bounded, and a check that finds none is refused. In a capture: one
// kernel node with slots of its own (captured_tensors.hpp). Nothing is copied by the host, nothing waits for the device.
// Owned by TensorWatch. Thread rule: that of DeviceTensors.
#pragma once

#include <memory>

#include "fingerprint/cuda/fingerprint_ptx.hpp"
#include "fingerprint/device_tensors.hpp"

namespace plumb::fingerprint {

struct CudaTensorsOptions {
    KernelText image = fingerprint_ptx; // of the kernels; null: none were built in, and every check says so
    std::uint32_t eager_slots = 4096;   // of a context
};

/// Takes every check on a queue of plumb::cuda(), also where there is no driver: then it says so.
std::unique_ptr<DeviceTensors> make_cuda_tensors(const CudaTensorsOptions& options = {});

} // namespace plumb::fingerprint
