// SPDX-License-Identifier: Apache-2.0
// One OpenCL device with a context, an in-order profiled queue, the decoder's kernels and its memory. Memory is the host's,
// used by buffers of the device (no copy where they are one), and is found again by its addresses. Owned by the backend; one
// thread at a time. The first error of an operation is kept: what follows it does nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decoder/kernels/opencl/api.hpp"

namespace plumb::decoder::opencl {

enum class Kernel : std::uint8_t {
    product_f32,
    product_bf16,
    embed_f32,
    embed_bf16,
    rms_norm,
    rope,
    kv_append,
    attention,
    add,
    silu_multiply,
    largest,
    count,
};

/// kernels.cl
const char* kernels_text() noexcept;

/// A place in a buffer: its memory object and how many values of `value_bytes` lie before it.
struct BufferPlace {
    cl_mem buffer = nullptr;
    cl_ulong at = 0;
};

class OpenClDevice {
  public:
    /// The `index`-th device of all platforms. Errors: unavailable, not_found, failed (the kernels do not compile).
    static Result<std::unique_ptr<OpenClDevice>> open(const Api& calls, std::size_t index);
    ~OpenClDevice();
    OpenClDevice(const OpenClDevice&) = delete;
    OpenClDevice& operator=(const OpenClDevice&) = delete;

    /// Zeroed memory that lives as long as the device. Errors: out_of_memory.
    [[nodiscard]] Result<void*> allocate(std::size_t bytes);
    /// Memory of somebody else that only operations read; it must live longer. Repeating it is cheap.
    [[nodiscard]] Status adopt(const void* data, std::size_t bytes);

    /// Runs a kernel over `x` times `y` items; `arguments` are values and Places, in the order of its parameters.
    template <class... Arguments>
    void run(Kernel kernel, std::size_t x, std::size_t y, const Arguments&... arguments) noexcept {
        cl_uint next = 0;
        (set(kernel, next, arguments), ...);
        enqueue(kernel, x, y);
    }
    /// Where memory lies; REQUIRES that it was allocated or adopted.
    [[nodiscard]] BufferPlace place(const void* data, std::size_t value_bytes) noexcept;
    /// What the device holds there comes to the host, once everything before is done.
    void read(void* data, std::size_t bytes) noexcept;
    /// What the host has written there goes to the device.
    void write(void* data, std::size_t bytes) noexcept;

    [[nodiscard]] const Status& status() const noexcept { return status_; }
    [[nodiscard]] cl_command_queue queue() const noexcept { return queue_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] bool is_cpu() const noexcept { return is_cpu_; }

  private:
    struct Region {
        std::size_t bytes = 0;
        cl_mem buffer = nullptr;
        bool ours = false;
    };

    explicit OpenClDevice(const Api& calls) : calls_(calls) {}
    Status choose(std::size_t index);
    Status make_queue();
    Status build();
    Status add_region(void* data, std::size_t bytes, bool ours);
    template <class T>
    void set(Kernel kernel, cl_uint& next, const T& value) noexcept {
        set_bytes(kernel, next, sizeof value, &value);
    }
    void set(Kernel kernel, cl_uint& next, const BufferPlace& place) noexcept;
    void set_bytes(Kernel kernel, cl_uint& next, std::size_t bytes, const void* value) noexcept;
    void enqueue(Kernel kernel, std::size_t x, std::size_t y) noexcept;
    void check(cl_int result, const char* call) noexcept;
    [[nodiscard]] std::pair<const std::uintptr_t, Region>* region_of(const void* data) noexcept;

    const Api& calls_;
    cl_device_id device_ = nullptr;
    cl_context context_ = nullptr;
    cl_command_queue queue_ = nullptr;
    cl_program program_ = nullptr;
    std::vector<cl_kernel> kernels_;
    std::map<std::uintptr_t, Region> regions_; // by first address
    std::string name_;
    bool is_cpu_ = false;
    Status status_;
};

} // namespace plumb::decoder::opencl
