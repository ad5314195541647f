// SPDX-License-Identifier: Apache-2.0
// The HIP runtime in the form of the CUDA driver's table, found in libamdhip64 at run time. HIP has no contexts worth the
// name: a context here is a device of HIP's. Owned by the process; any thread.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/driver.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::hip {

using cuda::CuResult;
using cuda::Driver;
using cuda::Stream;

extern const cuda::Vendor hip_vendor;

/// The HIP of this process, loaded at the first call. Error unavailable says what is missing and what to do.
const Result<Driver>& driver();
/// Loads one anew from a library name; for tests.
Result<Driver> load_driver(const char* library);

/// One of PLUMB_HIP_GRAPH_CALLS.
struct GraphCall {
    const char* capability;
    const char* symbol;
    bool there;
};
/// Of the library that was loaded last.
std::vector<GraphCall> graph_calls();
std::vector<Capability> capabilities_of(const Driver& driver);

} // namespace plumb::backends::hip
