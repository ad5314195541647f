// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/stream_directory.hpp"
#include "plumb/cuda.hpp"

namespace plumb {

Queue cuda(CUstream_st* stream) noexcept {
    static auto& directory =
        *new backends::cuda::StreamDirectory({"cuda", "cuda_event", "CUDA streams", "reuse streams"});
    return directory.find(backends::cuda::driver(), stream);
}

} // namespace plumb
