// SPDX-License-Identifier: Apache-2.0
// One captured graph under a key: picks the plain executable or the instrumented twin, replay by replay.
// Owned by whoever holds the pointer; the public GraphProbe is a handle of it. Thread rule: any thread; launches of one
// probe are serialised by its own lock, held around the enqueue only.
#pragma once

#include <cstdint>

#include "plumb/result.hpp"

struct CUgraphExec_st;
struct CUstream_st;

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

} // namespace plumb::cudagraph
