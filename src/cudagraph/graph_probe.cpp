// SPDX-License-Identifier: Apache-2.0
// The public handles of a probe.
#include <utility>

#include "backends/cuda/driver.hpp"
#include "backends/hip/driver.hpp"
#include "cudagraph/probe.hpp"
#include "plumb/graph_probe.hpp"
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

namespace cudagraph {
plumb::detail::ProbeHandle share(std::shared_ptr<Probe> probe) {
    return plumb::detail::ProbeHandle(new plumb::detail::ProbeShare{std::move(probe)});
}
} // namespace cudagraph

inline namespace v1 {
namespace detail {
ProbeHandle::ProbeHandle(const ProbeHandle& other) noexcept : share_(other.share_) {
    if (share_ != nullptr) {
        // Relaxed: whoever copies holds a share already.
        share_->holders.fetch_add(1, std::memory_order_relaxed);
    }
}
ProbeHandle::~ProbeHandle() {
    // Release and acquire: the last one sees what the others did.
    if (share_ != nullptr && share_->holders.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        delete share_;
    }
}
} // namespace detail
} // namespace v1

Status GraphProbe::launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept {
    return probe_.get() != nullptr ? probe_.get()->probe->launch(plain, stream)
                                   : launch_plainly(backends::cuda::driver(), plain, stream);
}

Status HipGraphProbe::launch(void* plain, void* stream) noexcept {
    auto* const executable = static_cast<CUgraphExec_st*>(plain);
    auto* const on = static_cast<CUstream_st*>(stream);
    return probe_.get() != nullptr ? probe_.get()->probe->launch(executable, on)
                                   : launch_plainly(backends::hip::driver(), executable, on);
}

} // namespace plumb
