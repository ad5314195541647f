// SPDX-License-Identifier: Apache-2.0
// Reads kernel records from NVIDIA's CUPTI, where it is installed: the only source of true busy time inside replays. It
// slows the program down, even after it was stopped: use it in a process of its own, or where its user asked for it.
// Nothing is linked. One reader per process at a time. Thread rule: start(), take() and stop() from one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/driver_types.hpp"
#include "plumb/clock.hpp"
#include "plumb/result.hpp"

namespace plumb::backends::cuda {

struct CuptiOptions {
    std::vector<std::string> libraries;    // looked for first: full paths, e.g. in pip's package
    const HostClock* host_clock = nullptr; // whose nanoseconds the stamps are; null: CLOCK_MONOTONIC
    std::size_t max_kernels = 1'000'000;   // kept; the rest is counted
    void (*loaded)() = nullptr;            // called when CUPTI's library is there and before it is used; null: nobody
    bool origins = true;                   // KernelTrace::origins are wanted
    /// Told TracedKernel::correlation, on the launching thread, as a launch begins: from before kernels are traced until after, so of
    /// those told before start() returned some may lack kernels. May take no lock that is held around a call of the reader or of
    /// CUDA; null: launches are not looked at.
    void (*launched)(std::uint32_t correlation) = nullptr;
};

struct TracedKernel {
    std::string name;
    std::uint64_t begin_ns = 0; // on the common clock
    std::uint64_t end_ns = 0;
    std::uint32_t device = 0;
    std::uint32_t stream = 0;
    std::uint32_t correlation = 0;   // one per launch
    std::uint32_t graph = 0;         // the executable's, 0: eager
    std::uint64_t graph_node_id = 0; // of the executable's own node: see KernelTrace::origins
};

struct KernelTrace {
    std::vector<TracedKernel> kernels;
    /// Node of an executable -> node of the graph that it was instantiated from; of graphs instantiated while reading.
    std::map<std::uint64_t, GraphNode> origins;
    std::uint64_t untimed = 0;   // start and end 0: CUPTI could not time it
    std::uint64_t backwards = 0; // end before start: not to be used
    std::uint64_t beyond_bound = 0;
    std::uint64_t outside = 0; // of another time than this reading: not to be used
    std::uint64_t dropped = 0; // by CUPTI, for want of a buffer
    /// Correlations of the untimed, the backwards and those outside: their launches lack kernels.
    std::vector<std::uint32_t> unusable;
    std::uint32_t version = 0;   // CUPTI's own, 130001: 13.0 Update 1
    std::string library;         // what was loaded
    std::string missing_origins; // why `origins` is empty, if it has a reason
};

class CuptiReader {
  public:
    /// From here on kernels are traced. Error unavailable where CUPTI is not installed, permission where the system
    /// keeps it to the administrator, already_exists where another tool holds it: it serves one at a time.
    static Result<std::unique_ptr<CuptiReader>> start(const CuptiOptions& options = {});
    /// Takes what has ended since the last call, and goes on: a few hundred kernels may be held back behind one that runs. `origins`
    /// stays behind. After an error nothing was taken.
    Result<KernelTrace> take();
    /// Takes the rest; kernels that still run are untimed.
    Result<KernelTrace> stop();
    ~CuptiReader();
    CuptiReader(const CuptiReader&) = delete;
    CuptiReader& operator=(const CuptiReader&) = delete;

  private:
    struct Session;
    explicit CuptiReader(std::unique_ptr<Session> session);
    std::unique_ptr<Session> session_;
};

} // namespace plumb::backends::cuda
