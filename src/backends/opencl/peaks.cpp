// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/peaks.hpp"

#include <algorithm>
#include <string>

#include "backends/opencl/peak_kernels.hpp"
#include "base/os.hpp"

namespace plumb::backends::opencl {

Result<std::size_t> bytes_to_read_of(const OpenClDriver& driver, DeviceId device) {
    const auto cache = device_value<std::uint64_t>(driver, device, device_cache_bytes);
    const auto memory = device_value<std::uint64_t>(driver, device, device_memory_bytes);
    const auto largest = device_value<std::uint64_t>(driver, device, device_largest_buffer);
    const auto shared = device_value<std::uint32_t>(driver, device, device_shares_host_memory);
    for (const auto* asked : {&cache, &memory, &largest}) {
        if (!*asked) {
            return asked->error();
        }
    }
    if (!shared) {
        return shared.error();
    }
    std::uint64_t free_bytes = *memory;
    if (const std::uint64_t of_host = base::available_memory(); *shared != 0 && of_host != 0) {
        free_bytes = std::min(free_bytes, of_host);
    }
    // Four buffers of the largest size are as good as four times what one of them holds.
    constexpr std::uint64_t gib = std::uint64_t{1} << 30;
    return bytes_to_read(*cache, std::min(free_bytes, 4 * std::min(*largest, *memory)), *shared != 0 ? gib : 4 * gib);
}

Result<Peaks> measure_device_peaks(const OpenClDriver& driver, DeviceId device, std::uint32_t index,
                                   const PeakProgress& progress) {
    const Result<std::string> name = device_text(driver, device, device_name);
    const Result<std::size_t> bytes = bytes_to_read_of(driver, device);
    const auto cache = device_value<std::uint64_t>(driver, device, device_cache_bytes);
    if (!name || !bytes || !cache) {
        return !name ? name.error() : !bytes ? bytes.error() : cache.error();
    }
    Peaks peaks = unmeasured_peaks("opencl:" + std::to_string(index), *name, "not measured on OpenCL devices");
    peaks.last_level_cache_bytes = *cache > 0 ? measured_peak(static_cast<double>(*cache))
                                              : absent_peak("this device does not tell the size of its cache");

    measure_all([&](std::size_t wanted) { return OpenClPeakKernels::create(driver, device, wanted); }, *bytes, peaks,
                progress);
    return peaks;
}

} // namespace plumb::backends::opencl
