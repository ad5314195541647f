// SPDX-License-Identifier: Apache-2.0
// The CUDA graphs of a process that knows nothing of us, by their executables: which probe launches which, and when what is known of
// one no longer holds. Executables are the driver's handles: one set for all copies of libcudart.
// Thread rule: any thread. Never destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "plumb/profiler.hpp"

struct CUgraph_st;
struct CUgraphExec_st;
struct CUstream_st;

namespace plumb::attach::cudart {

class AttachedGraphs {
  public:
    explicit AttachedGraphs(Profiler& profiler) noexcept : profiler_(profiler) {}

    /// A graph was captured, or changed without changing its shape, or its handle is free again.
    static void a_graph_changed() noexcept { changes_.fetch_add(1, std::memory_order_relaxed); }

    /// `graph` became `executable`. The graph is only looked at.
    void instantiated(CUgraphExec_st* executable, CUgraph_st* graph);
    /// The executable was given the nodes of `graph`, which has its shape.
    void updated(CUgraphExec_st* executable, CUgraph_st* graph);
    /// `call` changed the executable in a way that nobody can read back: it is launched plainly from now on.
    void changed(CUgraphExec_st* executable, const char* call);
    /// REQUIRES: called before its handle may be given out anew.
    void destroyed(CUgraphExec_st* executable);

    /// A launch through `original`, or of the instrumented twin in its place. The answer is libcudart's own.
    int launch(CUgraphExec_st* executable, CUstream_st* stream, int (*original)(CUgraphExec_st*, CUstream_st*));

    struct Counts {
        std::uint64_t instantiated, updated, launched;
    };
    [[nodiscard]] Counts counts() const;

  private:
    struct Known {
        explicit Known(std::uint64_t number) : key(number) {}
        const std::uint64_t key;                // in the recording
        GraphProbe probe;                       // launches plainly where the graph could not be looked at
        CUgraph_st* graph = nullptr;            // that the probe was made of, when there were
        std::uint64_t changes = 0;              //   so many changes of graphs
        std::atomic<std::uint64_t> launches{0}; // since the probe was made
        std::uint64_t hasty_updates = 0;        // of an executable that was hardly launched since the last one
    };

    [[nodiscard]] bool off() const noexcept { return off_.load(std::memory_order_relaxed); }
    /// REQUIRES: nobody launches this executable now.
    void look(CUgraphExec_st* executable, std::uint64_t key, CUgraph_st* graph);
    /// Forgets a graph, and waits for what the driver must free of it. `why`: the middle of a sentence; empty: none is said.
    void forget(CUgraphExec_st* executable, const std::string& why);
    void switch_off(const Error& error);

    Profiler& profiler_;
    std::shared_mutex mutex_; // of known_
    std::unordered_map<CUgraphExec_st*, Known> known_;
    // Relaxed, all of them: each tells of itself alone.
    static inline std::atomic<std::uint64_t> changes_{0};
    std::atomic<bool> off_{false}; // after the first error of ours
    std::atomic<std::uint64_t> instantiated_{0}, updated_{0}, launched_{0};
};

} // namespace plumb::attach::cudart
