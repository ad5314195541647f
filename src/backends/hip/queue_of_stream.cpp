// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/stream_directory.hpp"
#include "backends/hip/driver.hpp"
#include "plumb/hip.hpp"

namespace plumb {

Queue hip(void* stream) noexcept {
    static auto& directory = *new backends::cuda::StreamDirectory({"hip", "hip_event", "HIP streams", "reuse streams"});
    return directory.find(backends::hip::driver(), static_cast<backends::cuda::Stream>(stream));
}

} // namespace plumb
