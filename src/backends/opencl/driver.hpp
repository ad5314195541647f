// SPDX-License-Identifier: Apache-2.0
// OpenCL as a table of functions, found in libOpenCL.so.1 (the loader of whatever drivers are installed) at run time.
// Nothing is linked. Owned by the process; any thread.
#pragma once

#include <string>
#include <vector>

#include "backends/opencl/driver_calls.hpp"
#include "backends/opencl/driver_types.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::opencl {

struct OpenClDriver {
#define PLUMB_OPENCL_MEMBER(member, symbol, need, result, parameters) result(*member) parameters = nullptr;
    PLUMB_OPENCL_CALLS(PLUMB_OPENCL_MEMBER)
#undef PLUMB_OPENCL_MEMBER
};

/// The loader of this process, opened at the first call. Error unavailable says what is missing and what to do.
const Result<OpenClDriver>& driver();
/// Opens a loader anew by its name; for tests.
Result<OpenClDriver> load_driver(const char* library);

/// "clEnqueueMarkerWithWaitList: out of resources (-5); <advice>" as an Error with the fitting code.
Error error_of(ClResult result, const char* call, const std::string& advice);

/// Every device of every platform, in the loader's order: their places are our device indices. Error unavailable where
/// there is none.
Result<std::vector<DeviceId>> devices_of(const OpenClDriver& driver);
Result<std::string> device_text(const OpenClDriver& driver, DeviceId device, std::uint32_t what);

/// A value that OpenCL gives of a queue: its context, device, properties.
template <class T>
Result<T> queue_value(const OpenClDriver& driver, CommandQueue queue, std::uint32_t what) {
    T value{};
    const ClResult asked = driver.get_command_queue_info(queue, what, sizeof value, &value, nullptr);
    return asked == ClResult::success
               ? Result<T>(value)
               : Result<T>(error_of(asked, "clGetCommandQueueInfo", "give a command queue that exists"));
}

} // namespace plumb::backends::opencl
