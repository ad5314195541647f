// SPDX-License-Identifier: Apache-2.0
// Fingerprints of some tensors in device memory, now, for whoever waits for the stream afterwards.
// Owned by its maker, who uses it from one thread, and destroys it when nothing enqueued is still on its way.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fingerprint/cuda/fingerprint_ptx.hpp"
#include "fingerprint/cuda/tensor_device.hpp"

namespace plumb::fingerprint {

class DevicePrints {
  public:
    /// Of at most `most` tensors at a time, on that stream.
    static Result<DevicePrints> create(const backends::cuda::Driver& driver, backends::cuda::Stream stream,
                                       std::size_t most, KernelText image = fingerprint_ptx);
    DevicePrints(DevicePrints&& other) noexcept;
    DevicePrints& operator=(DevicePrints&&) = delete;
    ~DevicePrints();

    /// Behind what the stream has been given so far.
    Status enqueue(const std::vector<Tensor>& tensors);
    /// Of the last enqueue(). Error pending where the device has not finished.
    Result<std::vector<Fingerprint>> read();
    /// Something may still be on its way: the memory is left to it.
    void give_up() noexcept { device_ = nullptr; }

  private:
    DevicePrints(TensorDevice& device, backends::cuda::Stream stream) : device_(&device), stream_(stream) {}

    TensorDevice* device_;
    backends::cuda::Stream stream_;
    DeviceSite site_;
    SlotBlock slots_;
    std::uint64_t next_ = 0;            // number of the next result
    std::vector<std::uint64_t> counts_; // elements of each tensor of the last enqueue()
};

} // namespace plumb::fingerprint
