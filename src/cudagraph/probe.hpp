// SPDX-License-Identifier: Apache-2.0
// One captured graph under a key: picks the plain executable or the instrumented twin, replay by replay.
// Owned by whoever holds the pointer; the public GraphProbe is a handle of it. Thread rule: any thread; launches of one
// probe are serialised by its own lock, held around the enqueue only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "plumb/graph_probe.hpp"
#include "plumb/result.hpp"

namespace plumb::cudagraph {

class Probe {
  public:
    virtual ~Probe() = default;
    Probe() = default;
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    /// See GraphProbe::launch().
    virtual Status launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept = 0;
    [[nodiscard]] virtual std::uint64_t key() const noexcept = 0;
};

/// For the constructors of GraphProbe and HipGraphProbe.
[[nodiscard]] plumb::detail::ProbeHandle share(std::shared_ptr<Probe> probe);

} // namespace plumb::cudagraph

namespace plumb {
inline namespace v1 {
struct detail::ProbeShare {
    std::shared_ptr<cudagraph::Probe> probe;
    std::atomic<std::uint32_t> holders{1};
};
} // namespace v1
} // namespace plumb
