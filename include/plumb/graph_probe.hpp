// SPDX-License-Identifier: Apache-2.0
// Probes of captured CUDA graphs, as Profiler::graph_captured() makes them, and what they share with those of HIP graphs.
// No CUDA header is needed: CUgraphExec and CUstream are pointers to the structs named here.
#pragma once

#include <utility>

#include "plumb/api.hpp"
#include "plumb/result.hpp"

struct CUgraphExec_st;
struct CUstream_st;

namespace plumb {
inline namespace v1 {
namespace detail {

struct ProbeShare; // src/cudagraph/probe.hpp

/// A share in one probe; null: none. Copies share it.
class PLUMB_API ProbeHandle {
  public:
    ProbeHandle() noexcept = default;
    explicit ProbeHandle(ProbeShare* share) noexcept : share_(share) {} // takes it over
    ProbeHandle(const ProbeHandle& other) noexcept;
    ProbeHandle(ProbeHandle&& other) noexcept : share_(std::exchange(other.share_, nullptr)) {}
    ProbeHandle& operator=(ProbeHandle other) noexcept {
        std::swap(share_, other.share_);
        return *this;
    }
    ~ProbeHandle();
    [[nodiscard]] ProbeShare* get() const noexcept { return share_; }

  private:
    ProbeShare* share_ = nullptr;
};

} // namespace detail
} // namespace v1

/// Launches a captured graph, and times what is inside it in some of its replays. Made by Profiler::graph_captured().
/// The plain graph and its executable stay untouched and the caller's; the instrumented twin is ours.
/// Copies share one state. Thread rule: any thread; launches of one probe are serialised.
class PLUMB_API GraphProbe {
  public:
    /// Launches plainly, and records nothing.
    GraphProbe() noexcept = default;

    /// cuGraphLaunch of `plain` on `stream`, or of the twin where this replay is to be sampled. The launch happens in any
    /// case; an error is the driver's own answer to it. Never waits for the device, beyond what cuGraphLaunch does.
    Status launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept;

    explicit GraphProbe(detail::ProbeHandle probe) noexcept : probe_(std::move(probe)) {}

  private:
    detail::ProbeHandle probe_;
};

} // namespace plumb
