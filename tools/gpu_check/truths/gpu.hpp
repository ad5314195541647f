// SPDX-License-Identifier: Apache-2.0
// One device as this program uses it: context, a stream, our kernels, and owners of the driver's objects. Everything goes
// through the library's own driver table. Owned by one section's process; one thread unless a function says more.
// Errors are thrown as Failure and end the section (or the one truth); the process that watches records the sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backends/cuda/driver.hpp"

namespace gpu_check {

using namespace plumb::backends::cuda;

struct Failure {
    std::string sentence;
};
struct NotApplicable {
    std::string reason;
};

[[noreturn]] void fail(std::string sentence);
/// Throws Failure unless `holds`.
void expect(bool holds, const std::string& sentence);

template <class Handle, auto destroy>
class Owned;

/// CLOCK_MONOTONIC.
std::int64_t host_ns();
void sleep_host_ns(std::int64_t ns);

/// The time that the host lives in, real or virtual.
struct HostTime {
    std::int64_t (*now_ns)() = host_ns;
    void (*sleep_ns)(std::int64_t ns) = sleep_host_ns;
};

struct NotReady {};
inline constexpr NotReady not_ready;

class Gpu {
  public:
    /// Initialises the driver and makes the device's primary context current. Failure where there is no driver or device.
    explicit Gpu(HostTime host_time = {});
    /// The driver alone: nothing is initialised, every member but `d` and what asks it is empty.
    explicit Gpu(NotReady, HostTime host_time = {});
    ~Gpu();
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    const Driver& d;
    const HostTime time;
    Device device = 0;
    Context context = nullptr;
    Stream stream = nullptr; // non-blocking
    std::string name;
    int multiprocessors = 1;

    /// Throws Failure with the error's name unless the result is success.
    void must(CuResult result, const char* call) const;
    void expect_result(CuResult result, CuResult wanted, const char* what) const;
    [[nodiscard]] std::string name_of(CuResult result) const;
    [[nodiscard]] int attribute(int which) const;

    [[nodiscard]] Function kernel(const std::string& kernel_name);
    /// check_spin_<us>us(out): one thread waits so long by %globaltimer; out (or 0): begin, end, clock64 ticks.
    [[nodiscard]] Function spin(unsigned microseconds);

    template <class... Parameters>
    void launch(Stream on, Function function, unsigned grid, unsigned block, Parameters... parameters) const {
        void* pointers[] = {&parameters..., nullptr};
        must(d.launch_kernel(function, grid, 1, 1, block, 1, 1, 0, on, pointers, nullptr), "cuLaunchKernel");
    }
    void launch_empty(Stream on);
    void launch_spin(Stream on, unsigned microseconds, DevicePointer out = 0);
    void wait(Stream on) const { must(d.stream_synchronize(on), "cuStreamSynchronize"); }
    void wait() const { wait(stream); }
    void record(Event event, Stream on) const { must(d.event_record(event, on), "cuEventRecord"); }
    /// Nanoseconds between two events that have happened.
    [[nodiscard]] double elapsed_ns(Event begin, Event end) const;
    template <class T>
    [[nodiscard]] std::vector<T> read(DevicePointer from, std::size_t count) const {
        std::vector<T> values(count);
        must(d.memcpy_dtoh_async(values.data(), from, count * sizeof(T), stream), "cuMemcpyDtoHAsync");
        wait();
        return values;
    }
    void set32(DevicePointer to, unsigned value, std::size_t count) const {
        must(d.memset_d32_async(to, value, count, stream), "cuMemsetD32Async");
        wait();
    }

  private:
    Module module_ = nullptr;
    std::vector<std::pair<std::string, Function>> known_;
};

/// Destroys its object at the end of its life; the answer is not looked at.
template <class Handle, auto destroy>
class Owned {
  public:
    explicit Owned(Gpu& gpu, Handle handle = {}) : gpu_(&gpu), handle_(handle) {}
    Owned(Owned&& other) noexcept : gpu_(other.gpu_), handle_(std::exchange(other.handle_, Handle{})) {}
    Owned& operator=(Owned&& other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owned() { reset(); }
    void reset() {
        if (handle_ != Handle{}) {
            static_cast<void>((gpu_->d.*destroy)(handle_));
        }
        handle_ = Handle{};
    }
    Handle release() { return std::exchange(handle_, Handle{}); }
    operator Handle() const { return handle_; } // NOLINT: stands for the handle
    Handle* out() { return &handle_; }

  private:
    Gpu* gpu_;
    Handle handle_;
};

using OwnedStream = Owned<Stream, &Driver::stream_destroy>;
using OwnedEvent = Owned<Event, &Driver::event_destroy>;
using OwnedGraph = Owned<Graph, &Driver::graph_destroy>;
using OwnedExec = Owned<GraphExec, &Driver::graph_exec_destroy>;
using OwnedMemory = Owned<DevicePointer, &Driver::mem_free>;
using OwnedHostMemory = Owned<void*, &Driver::mem_free_host>;

OwnedStream make_stream(Gpu& gpu, unsigned flags = stream_non_blocking);
OwnedEvent make_event(Gpu& gpu, unsigned flags = event_default);
OwnedGraph make_graph(Gpu& gpu);
OwnedExec instantiate(Gpu& gpu, Graph graph);
OwnedMemory allocate(Gpu& gpu, std::size_t bytes);
/// Mapped into the device; `device_address` is set.
OwnedHostMemory allocate_mapped(Gpu& gpu, std::size_t bytes, DevicePointer& device_address);

/// A kernel node after `after` (null: a root).
GraphNode add_kernel(Gpu& gpu, Graph graph, GraphNode after, Function function, void** parameters = nullptr);
GraphNode add_empty_kernel(Gpu& gpu, Graph graph, GraphNode after);
GraphNode add_spin(Gpu& gpu, Graph graph, GraphNode after, unsigned microseconds, DevicePointer out = 0);
GraphNode add_event(Gpu& gpu, Graph graph, GraphNode after, Event event);
std::vector<GraphNode> nodes_of(Gpu& gpu, Graph graph);

} // namespace gpu_check
