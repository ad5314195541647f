// SPDX-License-Identifier: Apache-2.0
// What a graph cache holds for one key: the executable that is live now, if any, and the key's account. Entries stay
// when their graph goes, so that a missing graph has a reason. Shared by the cache and whoever is in one of its calls.
//
// Locks, outermost first; only `life`, `tell` and the map lock are held while another of these is taken:
//   1. CacheEntry::life    one capture or invalidation of the key at a time
//   2. Executable::mutex  around driver calls on that executable: the driver's graph objects are not thread-safe
//   3. CacheEntry::tell    around what the profiler is told of the key, so that it hears things in order
//   4. the cache's map lock: never held around a driver call
//   5. the account's own
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "cudagraph/graph_ledger.hpp"
#include "cudagraph/guarded_driver.hpp"
#include "plumb/cuda_graph.hpp"
#include "plumb/graph_probe.hpp"

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

struct CacheEntry {
    CacheEntry(std::uint64_t name, std::shared_ptr<GraphAccount> its) : key(name), account(std::move(its)) {}

    const std::uint64_t key;
    const std::shared_ptr<GraphAccount> account; // its life so far, shared with the probes and the recording

    // Guarded by the cache's map lock.
    std::shared_ptr<Executable> live;
    Absence absence = Absence::never_captured;
    bool pinned = false; // being captured anew: not to be evicted
    std::uint64_t bytes = 0;

    std::atomic<std::uint64_t> last_use{0}; // relaxed: an order, not a handshake

    std::mutex life;
    std::mutex tell;
    const Executable* told = nullptr; // guarded by tell: whose graph the profiler has under this key
};

} // namespace plumb::cudagraph
