// SPDX-License-Identifier: Apache-2.0
// Chrome JSON whose events have no categories: what ran on a device is told by the names of processes and threads, as XProf
// (TensorFlow, JAX) writes them. A process "/device:GPU:0" is a device, of the host that its name begins with; a thread
// "Stream #13(Compute)" in it is a queue; its other threads show the same again by operation or module. Owned by the reader of one
// trace; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/trace.hpp"

namespace plumb::imported {

/// What a trace calls a process, or a thread of it.
struct LaneLabel {
    std::uint64_t process = 0;
    std::optional<std::uint64_t> thread;
    std::string name;
};

class DeviceLanes {
  public:
    explicit DeviceLanes(TraceBuilder& to) : to_(to) {}

    /// Takes them. Operations have the process and, as their stream, the thread of the file. Names may come behind what they name.
    void add(std::vector<LaneLabel>& labels, std::vector<RawDeviceOp>& ops);
    void finish();

  private:
    struct Device {
        std::uint64_t number = 0;
        std::uint64_t process = 0; // of the recording: all devices of a host are of one
    };
    enum class Known : std::uint8_t { not_yet, no_queue, queue };
    std::optional<Device> device_of(std::string_view name);
    Known place(RawDeviceOp& op) const;

    TraceBuilder& to_;
    std::map<std::string, std::uint64_t, std::less<>> hosts_; // numbered as they come
    std::map<std::uint64_t, std::optional<Device>> devices_;  // by process; none: no device
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::optional<std::uint64_t>> queues_;
    std::vector<RawDeviceOp> waiting_; // for a name
    bool any_ = false;
};

} // namespace plumb::imported
