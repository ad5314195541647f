// SPDX-License-Identifier: Apache-2.0
// The two kernels of src/backends/cuda/stamp.ptx, as host functions.
#include "virtual_gpu/state.hpp"

namespace plumb::vgpu {

namespace {

// A host thread may be reading what a device writes: both sides are atomic.
void store(std::uint64_t* to, std::uint64_t value) { __atomic_store_n(to, value, __ATOMIC_RELEASE); }

std::uint64_t load(const std::uint64_t* from) { return __atomic_load_n(from, __ATOMIC_ACQUIRE); }

void fault(const std::string& name) {
    ledger_error(name + " touched memory that is not there: the device is lost.");
    gpu().lost = CuResult::illegal_address;
}

void stamp(const KernelRun& run) {
    auto* counter = at<std::uint64_t>(run.param<DevicePointer>(1));
    const std::uint64_t slot = run.param<std::uint32_t>(2);
    const std::uint64_t slots = run.param<std::uint32_t>(3);
    const std::uint64_t mask = run.param<std::uint32_t>(4);
    if (counter == nullptr) {
        return fault(run.name);
    }
    const std::uint64_t index = (load(counter) & mask) * slots + slot;
    auto* target = at<std::uint64_t>(run.param<DevicePointer>(0) + index * sizeof(std::uint64_t));
    if (target == nullptr) {
        return fault(run.name);
    }
    store(target, run.globaltimer);
    if (const std::uint64_t advance = run.param<std::uint32_t>(5); advance != 0) {
        store(counter, load(counter) + advance);
    }
}

void stamp_advance(const KernelRun& run) {
    auto* counter = at<std::uint64_t>(run.param<DevicePointer>(0));
    if (counter == nullptr) {
        return fault(run.name);
    }
    store(counter, load(counter) + 1);
}

} // namespace

void add_stamp_kernels(Gpu& gpu) {
    gpu.kernels["plumb_stamp"] = {{8, 8, 4, 4, 4, 4}, -1, -1, stamp};
    gpu.kernels["plumb_stamp_advance"] = {{8}, -1, -1, stamp_advance};
}

} // namespace plumb::vgpu
