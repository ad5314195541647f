// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/driver.hpp"

#include <utility>

#include "base/dynamic_library.hpp"

namespace plumb::backends::opencl {
namespace {

using base::Need;

Result<OpenClDriver> load(const std::vector<std::string>& names) {
    Result<base::DynamicLibrary> opened =
        base::DynamicLibrary::open(names, "install an OpenCL loader (ocl-icd-libopencl1) and a driver for your device");
    if (!opened) {
        return opened.error();
    }
    const base::DynamicLibrary& library = base::keep_for_good(std::move(*opened));
    OpenClDriver driver;
    const char* missing = nullptr;
#define PLUMB_OPENCL_FIND(member, name, need, result, parameters)          \
    if (const Result<void*> found = library.symbol(#name); found) {        \
        driver.member = reinterpret_cast<decltype(driver.member)>(*found); \
    } else if (Need::need == Need::required && missing == nullptr) {       \
        missing = #name;                                                   \
    }
    PLUMB_OPENCL_CALLS(PLUMB_OPENCL_FIND)
#undef PLUMB_OPENCL_FIND
    if (missing != nullptr) {
        return Error{ErrorCode::unavailable,
                     library.name() + " has no " + missing + "; install an OpenCL loader of version 1.2 or later"};
    }
    return driver;
}

const char* words_of(ClResult result) {
    switch (result) {
    case ClResult::device_not_found:
        return "no such device";
    case ClResult::device_not_available:
        return "the device is not available";
    case ClResult::out_of_resources:
        return "out of resources";
    case ClResult::out_of_host_memory:
        return "out of host memory";
    case ClResult::profiling_info_not_available:
        return "no profiling information";
    case ClResult::invalid_value:
        return "invalid value";
    case ClResult::invalid_device:
        return "invalid device";
    case ClResult::invalid_context:
        return "invalid context";
    case ClResult::invalid_queue_properties:
        return "the device has no such queue";
    case ClResult::invalid_command_queue:
        return "invalid command queue";
    case ClResult::invalid_event:
        return "invalid event";
    case ClResult::invalid_operation:
        return "invalid operation";
    case ClResult::platform_not_found:
        return "no OpenCL platform";
    default:
        return "an error";
    }
}

ErrorCode code_of(ClResult result) {
    switch (result) {
    case ClResult::device_not_found:
    case ClResult::device_not_available:
    case ClResult::platform_not_found:
        return ErrorCode::unavailable;
    case ClResult::out_of_resources:
    case ClResult::out_of_host_memory:
        return ErrorCode::out_of_memory;
    case ClResult::invalid_value:
    case ClResult::invalid_device:
    case ClResult::invalid_context:
    case ClResult::invalid_command_queue:
    case ClResult::invalid_event:
        return ErrorCode::invalid_argument;
    case ClResult::invalid_operation:
    case ClResult::invalid_queue_properties:
        return ErrorCode::unsupported;
    default:
        return ErrorCode::failed;
    }
}

Error no_devices(ClResult result, const char* call) {
    Error error = error_of(result, call,
                           "install a driver for your device (pocl-opencl-icd runs OpenCL on a CPU), and see that "
                           "clinfo lists it");
    error.code = ErrorCode::unavailable;
    return error;
}

Result<std::vector<Platform>> platforms_of(const OpenClDriver& driver) {
    std::uint32_t count = 0;
    ClResult asked = driver.get_platform_ids(0, nullptr, &count);
    std::vector<Platform> platforms(asked == ClResult::success ? count : 0);
    if (!platforms.empty()) {
        asked = driver.get_platform_ids(count, platforms.data(), nullptr);
    }
    if (asked != ClResult::success || platforms.empty()) {
        return no_devices(asked == ClResult::success ? ClResult::platform_not_found : asked, "clGetPlatformIDs");
    }
    return platforms;
}

} // namespace

const Result<OpenClDriver>& driver() {
    static const Result<OpenClDriver>& only = *new Result<OpenClDriver>(load({"libOpenCL.so.1"}));
    return only;
}

Result<OpenClDriver> load_driver(const char* library) { return load({library != nullptr ? library : ""}); }

Error error_of(ClResult result, const char* call, const std::string& advice) {
    return {code_of(result), std::string(call) + ": " + words_of(result) + " (" +
                                 std::to_string(static_cast<std::int32_t>(result)) + "); " + advice};
}

Result<std::vector<DeviceId>> devices_of(const OpenClDriver& driver) {
    const Result<std::vector<Platform>> platforms = platforms_of(driver);
    if (!platforms) {
        return platforms.error();
    }
    std::vector<DeviceId> devices;
    for (const Platform platform : *platforms) {
        std::uint32_t count = 0;
        if (driver.get_device_ids(platform, device_type_all, 0, nullptr, &count) != ClResult::success || count == 0) {
            continue; // a platform without devices is no error
        }
        const std::size_t before = devices.size();
        devices.resize(before + count);
        if (const ClResult asked =
                driver.get_device_ids(platform, device_type_all, count, devices.data() + before, nullptr);
            asked != ClResult::success) {
            return no_devices(asked, "clGetDeviceIDs");
        }
    }
    return devices.empty() ? Result<std::vector<DeviceId>>(no_devices(ClResult::device_not_found, "clGetDeviceIDs"))
                           : Result<std::vector<DeviceId>>(std::move(devices));
}

Result<std::string> device_text(const OpenClDriver& driver, DeviceId device, std::uint32_t what) {
    std::size_t size = 0;
    ClResult asked = driver.get_device_info(device, what, 0, nullptr, &size);
    std::string text(asked == ClResult::success ? size : 0, '\0');
    if (!text.empty()) {
        asked = driver.get_device_info(device, what, size, text.data(), nullptr);
    }
    if (asked != ClResult::success) {
        return no_devices(asked, "clGetDeviceInfo");
    }
    text.resize(text.find_last_not_of('\0') + 1); // OpenCL counts the end, too
    return text;
}

} // namespace plumb::backends::opencl
