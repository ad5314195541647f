// SPDX-License-Identifier: Apache-2.0
// The public handles of a probe.
#include "backends/cuda/driver.hpp"
#include "backends/hip/driver.hpp"
#include "cudagraph/probe.hpp"
#include "plumb/cuda_graph.hpp"
#include "plumb/hip.hpp"

namespace plumb {

namespace {

Status launch_plainly(const Result<backends::cuda::Driver>& driver, CUgraphExec_st* plain, CUstream_st* stream) {
    if (!driver) {
        return driver.error();
    }
    if (driver->graph_launch == nullptr) {
        return Error{ErrorCode::unsupported, driver->no_graphs};
    }
    const backends::cuda::CuResult result = driver->graph_launch(plain, stream);
    return result == backends::cuda::CuResult::success
               ? Status()
               : backends::cuda::error_of(*driver, result, "cuGraphLaunch",
                                          "the graph was not launched; check the executable and the stream");
}

} // namespace

Status GraphProbe::launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept {
    return probe_ != nullptr ? probe_->launch(plain, stream) : launch_plainly(backends::cuda::driver(), plain, stream);
}

Status HipGraphProbe::launch(void* plain, void* stream) noexcept {
    auto* const executable = static_cast<CUgraphExec_st*>(plain);
    auto* const on = static_cast<CUstream_st*>(stream);
    return probe_ != nullptr ? probe_->launch(executable, on) : launch_plainly(backends::hip::driver(), executable, on);
}

} // namespace plumb
