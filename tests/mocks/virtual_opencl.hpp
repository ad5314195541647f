// SPDX-License-Identifier: Apache-2.0
// OpenCL in virtual time: the table of calls that the opencl backend uses, over a device whose every stamp is known, whose
// clock has a rate and a zero of its own, and whose calls fail on demand. One device for the whole process, since the calls
// are plain functions; any thread. reset() puts everything back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backends/opencl/driver.hpp"
#include "plumb/clock.hpp"

namespace plumb::vocl {

/// One execution of a kernel, given to Config::kernel when it is enqueued.
struct KernelRun {
    std::string name;
    std::size_t items = 0, of_group = 0;
    std::vector<std::vector<unsigned char>> arguments;
    template <class T>
    [[nodiscard]] T value(std::size_t place) const {
        T made{};
        std::memcpy(&made, arguments.at(place).data(), sizeof made);
        return made;
    }
    /// The buffer that is this argument.
    [[nodiscard]] unsigned char* memory(std::size_t place) const;
    [[nodiscard]] std::size_t memory_bytes(std::size_t place) const;
};

struct Config {
    std::int64_t call_ns = 500;         // the host spends so much in a call that enqueues
    std::int64_t start_ns = 1'000;      // from the call to the earliest start on the device
    double drift = 20e-6;               // the device's nanosecond is so much shorter than the host's
    std::uint64_t zero = 7'000'000'000; // the device's clock when the host's is 0
    bool device_timer = false;          // clGetDeviceAndHostTimer works; else it answers -59
    const char* version = "OpenCL 3.0 virtual";
    std::size_t resolution_ns = 1;
    bool queued_by_host_clock = false; // a driver whose queued and submitted stamps are of another clock
    bool zero_stamps = false;          // a driver that does not stamp
    bool reversed_stamps = false;      // a driver that says that commands ended before they began
    std::int32_t failed_status = 0;    // below 0: every command ends with this error
    // What the device says of itself beside its name.
    std::uint64_t device_type = 4; // a GPU
    std::uint32_t compute_units = 2;
    std::uint32_t float_lanes = 1;
    std::uint64_t cache_bytes = std::uint64_t{1} << 20;
    std::uint64_t memory_bytes = std::uint64_t{1} << 30;
    std::uint64_t largest_buffer = std::uint64_t{1} << 28;
    std::uint32_t shares_host_memory = 0;
    /// What kernels do; gives how many nanoseconds of the host's clock that takes. Must not call OpenCL. Empty: nothing, 1 us.
    std::function<std::int64_t(const KernelRun&)> kernel = {};
};

/// Forgets everything: queues and events of before are invalid.
void reset(const Config& config = {});
Config& config();

const backends::opencl::OpenClDriver& driver();
const HostClock& host_clock();
backends::opencl::Context context();
backends::opencl::DeviceId device();

/// One reference; `properties` as of clCreateCommandQueue.
backends::opencl::CommandQueue make_queue(std::uint64_t properties);
void release(backends::opencl::CommandQueue queue);
/// A command that runs for `ns`. Its event, one reference; null where the caller wants none.
void enqueue(backends::opencl::CommandQueue queue, std::int64_t ns, backends::opencl::Event* event = nullptr);
void release(backends::opencl::Event event);

/// The host does something else for so long.
void pass(std::int64_t ns);
/// The host goes on to the moment when everything enqueued has ended.
void settle();
std::int64_t now_ns();
/// A moment of the host on the device's clock.
std::uint64_t device_ns(std::int64_t host_ns);

/// The `use`-th use of that call from now on fails, once, with out of resources; use 0: none fails any more.
void fail(const std::string& call, unsigned use);
bool has_failed();
/// Events, queues, contexts, programs, kernels and buffers alive, by their references.
std::size_t alive();
/// Calls that wait for the device, so far.
std::size_t waits();

} // namespace plumb::vocl
