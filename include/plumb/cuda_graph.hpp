// SPDX-License-Identifier: Apache-2.0
// CUDA graphs: probes that time what is inside the replays of any graph, and a cache of graphs by key.
// No CUDA header is needed: CUgraph, CUgraphExec, CUstream and cudaGraph_t, … are pointers to the structs named here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/api.hpp"
#include "plumb/result.hpp"

struct CUgraph_st;
struct CUgraphExec_st;
struct CUstream_st;

namespace plumb {

class Profiler;
namespace cudagraph {
class Probe; // src/cudagraph
class Cache;
} // namespace cudagraph

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

    explicit GraphProbe(std::shared_ptr<cudagraph::Probe> probe) noexcept : probe_(std::move(probe)) {}

  private:
    std::shared_ptr<cudagraph::Probe> probe_;
};

/// Settings of a CudaGraphCache. Those with a key of the spec string (docs/configuration.md) are taken from there by
/// from_config().
struct PLUMB_API CudaGraphOptions {
    std::size_t max_graphs = 64;     // least recently replayed go first
    std::uint64_t max_bytes = 0;     // of graphs and twins, estimated; 0: no bound
    bool upload_each = false;        // graph.upload=each: upload before every launch, not once
    bool sync = false;               // graph.sync=on: wait for each replay
    std::uint32_t profile_every = 0; // graph.profile=n: one JSON line of every n-th replay; 0: none
    std::string profile_path;        // where those lines go
};

/// Captured decode steps by key, e.g. the padded batch size. Every failure leaves stream, context and cache as they
/// were, and names the call. Thread rule: any thread; one capture per thread at a time.
class PLUMB_API CudaGraphCache {
  public:
    /// `profiler` may be null: then nothing inside replays is timed. It must outlive the cache.
    explicit CudaGraphCache(Profiler* profiler, CudaGraphOptions options = {});
    ~CudaGraphCache();
    CudaGraphCache(const CudaGraphCache&) = delete;
    CudaGraphCache& operator=(const CudaGraphCache&) = delete;

    /// Error invalid_argument when this thread captures already.
    Status begin_capture(CUstream_st* stream);
    /// Ends, instantiates and uploads. An empty graph and an end without begin are errors; a graph that `key` names
    /// already is updated in place where the driver can, else replaced.
    Status end_capture(std::uint64_t key);
    /// Gives up the capture of this thread.
    Status abort_capture();
    /// Launches the graph of `key`. False: there is none; run the step eagerly (counted with its reason).
    Result<bool> replay(std::uint64_t key, CUstream_st* stream);
    /// Forgets a graph (running replays finish). False: there was none.
    bool invalidate(std::uint64_t key);
    void invalidate_all();

    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] std::uint64_t bytes() const; // estimated
    /// True after an error that leaves the CUDA context unusable: no driver call is made any more.
    [[nodiscard]] bool lost() const noexcept;
    /// Why, and what was left behind.
    [[nodiscard]] Status status() const;

  private:
    std::unique_ptr<cudagraph::Cache> cache_;
};

} // namespace plumb
