// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/peaks.hpp"

#include <memory>
#include <string>

#include "backends/cuda/peak_kernels.hpp"

namespace plumb::backends::cuda {
namespace {

// A pass of a millisecond on the fastest memory there is, so that the launch inside it does not matter.
constexpr std::uint64_t least_bytes = std::uint64_t{4} << 30;

Result<std::uint64_t> free_bytes_of(const Driver& driver, Device device) {
    const Result<std::unique_ptr<OwnStream>> own = OwnStream::create(driver, device);
    if (!own) {
        return own.error();
    }
    const RelaxedCapture relaxed(driver);
    const CurrentContext current(driver, (*own)->context());
    std::size_t free_bytes = 0, total_bytes = 0;
    const CuResult asked =
        current.status() == CuResult::success ? driver.mem_get_info(&free_bytes, &total_bytes) : current.status();
    if (asked != CuResult::success) {
        return error_of(driver, asked, "cuMemGetInfo", "peaks of this device are not measured");
    }
    return std::uint64_t{free_bytes};
}

} // namespace

Error no_such_device(const Driver& driver, std::uint32_t index) {
    const std::string api = driver.vendor->api;
    return {ErrorCode::not_found, "there is no " + api + " device " + std::to_string(index) + ", or " + api +
                                      " is not initialised; ask for one that enumerate() lists"};
}

Result<Peaks> measure_device_peaks(const Driver& driver, std::uint32_t index, const char* image,
                                   const PeakProgress& progress) {
    if (driver.vendor->no_kernels != nullptr) {
        return Error{ErrorCode::unsupported, driver.vendor->no_kernels};
    }
    if (image == nullptr) {
        return Error{ErrorCode::unsupported,
                     "this library was built without nvcc, so that peaks of CUDA devices are not "
                     "measured; build it where nvcc is found"};
    }
    Device device = 0;
    if (driver.device_get(&device, static_cast<int>(index)) != CuResult::success) {
        return no_such_device(driver, index);
    }
    const Result<std::string> name = device_name(driver, device);
    if (!name) {
        return name.error();
    }

    Peaks peaks = unmeasured_peaks(std::string(driver.vendor->backend) + ":" + std::to_string(index), *name,
                                   "not measured on CUDA devices");
    int cache = 0;
    const CuResult asked = driver.device_get_attribute(&cache, attribute_l2_cache_bytes, device);
    peaks.last_level_cache_bytes = asked == CuResult::success && cache > 0
                                       ? measured_peak(cache)
                                       : absent_peak("this device does not tell the size of its cache");
    const Result<std::uint64_t> free_bytes = free_bytes_of(driver, device);
    if (!free_bytes) {
        peaks.read_gigabytes_per_second = peaks.f32_teraflops = absent_peak(free_bytes.error().message);
        return peaks;
    }
    const std::size_t bytes =
        *free_bytes == 0 ? 0 : bytes_to_read(static_cast<std::uint64_t>(std::max(cache, 0)), *free_bytes, least_bytes);
    measure_all([&](std::size_t wanted) { return CudaPeakKernels::create(driver, device, wanted, image); }, bytes,
                peaks, progress);
    return peaks;
}

} // namespace plumb::backends::cuda
