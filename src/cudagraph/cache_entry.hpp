// SPDX-License-Identifier: Apache-2.0
// What a graph cache knows of one key: the executable that is live now, if any, and the key's life so far. Entries stay
// when their graph goes, so that a missing graph has a reason. Shared by the cache and whoever is in one of its calls.
//
// Locks, outermost first; none but `life` is held while another of these is taken:
//   1. Entry::life    one capture or invalidation of the key at a time
//   2. Executable::mutex  around driver calls on that executable: the driver's graph objects are not thread-safe
//   3. Entry::tell    around what the profiler is told of the key, so that it hears things in order
//   4. the cache's map lock, and Entry::row_mutex: never held around a driver call
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cudagraph/guarded_driver.hpp"
#include "cudagraph/memory_estimate.hpp"
#include "plumb/cuda_graph.hpp"

namespace plumb::cudagraph {

/// A graph with its executable. Whoever holds the pointer may launch; the last one to let go frees both (the driver frees
/// what is in flight later).
struct Executable {
    Executable(GraphHolder plain, ExecHolder instance, cuda::Context where)
        : graph(std::move(plain)), exec(std::move(instance)), context(where) {}

    std::mutex mutex;
    GraphHolder graph; // node handles for calls on the executable come from it
    ExecHolder exec;   // destroyed before its graph
    const cuda::Context context;
    GraphProbe probe;    // guarded by mutex
    bool probed = false; // guarded by mutex
};

/// Why a key has no live graph.
enum class Absence : std::uint8_t { never_captured, evicted, invalidated, context_gone, lost };
const char* reason_of(Absence absence) noexcept;

struct Entry {
    explicit Entry(std::uint64_t name) : key(name) {}

    const std::uint64_t key;

    // Guarded by the cache's map lock.
    std::shared_ptr<Executable> live;
    Absence absence = Absence::never_captured;
    bool pinned = false; // being captured anew: not to be evicted
    std::uint64_t bytes = 0;
    std::uint64_t twin_bytes = 0;

    std::atomic<std::uint64_t> last_use{0}; // relaxed: an order, not a handshake
    std::atomic<std::uint64_t> replays{0};  // relaxed: statistics
    std::atomic<std::uint64_t> launch_ns{0};

    std::mutex life;
    std::mutex tell;
    const Executable* told = nullptr; // guarded by tell: whose graph the profiler has under this key

    static constexpr std::size_t max_reasons = 32;
    std::mutex row_mutex;
    CudaGraphRow row; // guarded by row_mutex; without what stands above
    std::map<std::string, std::uint64_t> eager;
    NodeCounts kernels; // of the last capture
};

} // namespace plumb::cudagraph
