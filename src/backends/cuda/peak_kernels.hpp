// SPDX-License-Identifier: Apache-2.0
// The kernels of peaks.cu on one device: loaded, run and checked on a stream of their own, timed by two events around each.
// Owns what it makes of the driver; one thread uses it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/own_stream.hpp"
#include "backends/peak_measurement.hpp"

namespace plumb::backends::cuda {

/// The text of peaks.cu, built in; null where this library was built without nvcc.
extern const char* const peaks_ptx;

class CudaPeakKernels final : public PeakKernels {
  public:
    static constexpr unsigned threads_of_block = 256;

    /// `bytes` of the device's memory are taken and filled; 0: only multiply_adds() works. `image`: peaks_ptx.
    static Result<std::unique_ptr<CudaPeakKernels>> create(const Driver& driver, Device device, std::size_t bytes,
                                                           const char* image);
    ~CudaPeakKernels() override;

    Result<double> read(int shape) override;
    Result<ArithmeticPass> multiply_adds(int shape, std::uint32_t rounds) override;

  private:
    CudaPeakKernels(const Driver& driver, unsigned multiprocessors)
        : driver_(driver), multiprocessors_(multiprocessors) {}
    Status load(const char* image);
    Status take_memory(std::size_t bytes);
    /// Launches twice, and times the second. Nanoseconds between the events around it.
    Result<double> run(Function kernel, unsigned blocks, void** parameters);
    /// So many sums into host_.
    Status fetch(std::size_t count);
    [[nodiscard]] unsigned blocks(int shape) const { return multiprocessors_ * (4U << (shape & 3)); }

    const Driver& driver_;
    const unsigned multiprocessors_;
    std::unique_ptr<OwnStream> stream_;
    Module module_ = nullptr;
    Function fill_ = nullptr, read_ = nullptr, multiply_adds_ = nullptr;
    Event begin_ = nullptr, end_ = nullptr;
    DevicePointer memory_ = 0, sums_ = 0;
    std::vector<std::uint32_t> host_; // as long as a copy may be on its way, also one that nobody could wait for
    std::size_t bytes_ = 0;
};

} // namespace plumb::backends::cuda
