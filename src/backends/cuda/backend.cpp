// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver_backend.hpp"

namespace plumb {

Backend& cuda_backend(); // declared by the generated registry
Backend& cuda_backend() {
    static backends::cuda::DriverBackend backend(backends::cuda::cuda_vendor, backends::cuda::driver);
    return backend;
}

} // namespace plumb
