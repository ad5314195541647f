// SPDX-License-Identifier: Apache-2.0
// Fingerprints of tensors that only a device can read: one implementation per kind of device, in a folder of its own.
// Owned by TensorWatch. Thread rule: enqueue() from any recording thread; collect() from the drain thread.
#pragma once

#include <cstdint>
#include <vector>

#include "plumb/result.hpp"
#include "record/tensor_sink.hpp"
#include "recording/recording.hpp"

namespace plumb::fingerprint {

class DeviceTensors {
  public:
    virtual ~DeviceTensors() = default;
    /// True where it can read what the call's queue works on.
    [[nodiscard]] virtual bool takes(const record::TensorCall& call) const noexcept = 0;
    /// Puts the work into the queue and returns; `label` is complete but for its fingerprint (and argmax, margin).
    /// Inside a capture it becomes part of the graph: each replay gives one, with its replay number and launching step.
    virtual Status enqueue(const record::TensorCall& call, recording::TensorCheck label) noexcept = 0;
    /// Adds what the device has finished. Never waits.
    virtual void collect(std::vector<recording::TensorCheck>& done) = 0;
    /// Enqueued and not collected yet.
    [[nodiscard]] virtual std::uint64_t pending() const noexcept = 0;
    /// Enqueued, and lost before anybody read them.
    [[nodiscard]] virtual std::uint64_t dropped() const noexcept { return 0; }
};

} // namespace plumb::fingerprint
