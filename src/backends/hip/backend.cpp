// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver_backend.hpp"
#include "backends/hip/driver.hpp"

namespace plumb {

Backend& hip_backend(); // declared by the generated registry
Backend& hip_backend() {
    static backends::cuda::DriverBackend backend(backends::hip::hip_vendor, backends::hip::driver);
    return backend;
}

} // namespace plumb
