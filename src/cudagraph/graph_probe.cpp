// SPDX-License-Identifier: Apache-2.0
// The public handle of a probe.
#include "backends/cuda/driver.hpp"
#include "cudagraph/probe.hpp"
#include "plumb/cuda_graph.hpp"

namespace plumb {

Status GraphProbe::launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept {
    if (probe_ != nullptr) {
        return probe_->launch(plain, stream);
    }
    const auto& driver = backends::cuda::driver();
    if (!driver) {
        return driver.error();
    }
    const backends::cuda::CuResult result = driver->graph_launch(plain, stream);
    return result == backends::cuda::CuResult::success
               ? Status()
               : backends::cuda::error_of(*driver, result, "cuGraphLaunch",
                                          "the graph was not launched; check the executable and the stream");
}

} // namespace plumb
