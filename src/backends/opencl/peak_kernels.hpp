// SPDX-License-Identifier: Apache-2.0
// The kernels of peaks.cl on one device: built, run and checked on a queue of their own, timed by their events. Owns what
// it makes of the driver; one thread uses it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/opencl/driver.hpp"
#include "backends/opencl/own_queue.hpp"
#include "backends/peak_measurement.hpp"

namespace plumb::backends::opencl {

/// The text of peaks.cl, built in.
extern const char* const peaks_text;

/// How kernels are made for a device.
struct PeakShape {
    bool is_cpu = false; // one item reads on in memory, instead of many side by side
    std::uint32_t units = 1;
    std::uint32_t float_lanes = 4; // 1, 2, 4, 8 or 16
    bool fused = true;             // fma() is the device's own
    std::size_t largest_group = 256;
};
Result<PeakShape> peak_shape_of(const OpenClDriver& driver, DeviceId device);

/// A value that OpenCL gives of a device.
template <class T>
Result<T> device_value(const OpenClDriver& driver, DeviceId device, std::uint32_t what) {
    T value{};
    const ClResult asked = driver.get_device_info(device, what, sizeof value, &value, nullptr);
    return asked == ClResult::success
               ? Result<T>(value)
               : Result<T>(error_of(asked, "clGetDeviceInfo", "see that clinfo can use this device"));
}

class OpenClPeakKernels final : public PeakKernels {
  public:
    /// `bytes` of the device's memory are taken and filled; 0: only multiply_adds() works.
    static Result<std::unique_ptr<OpenClPeakKernels>> create(const OpenClDriver& driver, DeviceId device,
                                                             std::size_t bytes);
    ~OpenClPeakKernels() override;

    Result<double> read(int shape) override;
    Result<ArithmeticPass> multiply_adds(int shape, std::uint32_t rounds) override;

  private:
    OpenClPeakKernels(const OpenClDriver& driver, const PeakShape& shape) : driver_(driver), shape_(shape) {}
    Status build(DeviceId device);
    Status fill();
    Result<Kernel> kernel_of(const char* name);
    Result<Memory> new_memory(std::size_t bytes);
    /// Puts the arguments, of 4 or 8 bytes each, enqueues, waits. Nanoseconds on the device's clock.
    struct Argument {
        const void* value;
        std::size_t bytes;
    };
    Result<double> run(Kernel kernel, std::size_t groups, const std::vector<Argument>& arguments);
    Result<double> length_of(Event event);
    Status fetch(void* to, std::size_t bytes);
    [[nodiscard]] std::size_t local() const {
        return shape_.is_cpu ? 1 : std::min<std::size_t>(shape_.largest_group, 256);
    }
    [[nodiscard]] std::size_t groups(int shape) const {
        return std::size_t{shape_.units} * (std::size_t{4} << (shape & 3));
    }
    [[nodiscard]] std::size_t words() const { return shape_.is_cpu ? 16 : 4; } // of one load

    const OpenClDriver& driver_;
    const PeakShape shape_;
    std::unique_ptr<OwnQueue> queue_;
    Program program_ = nullptr;
    Kernel fill_ = nullptr, read_ = nullptr, multiply_adds_ = nullptr;
    Memory memory_ = nullptr, sums_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace plumb::backends::opencl
