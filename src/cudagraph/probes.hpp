// SPDX-License-Identifier: Apache-2.0
// Graph probes: which scope each node of a captured CUDA graph belongs to, and how long those scopes take inside replays.
// The caller's graph is never changed and need not outlive captured(): what is instrumented is a clone, the twin.
// Owned by a Session, which outlives neither its Recorder nor its Drain; probes may outlive it and then launch plainly.
// Thread rule: any thread; collect() from one thread. No lock is held around a driver call but that of one probe around
// its enqueue, and none that launches wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "cudagraph/graph_ledger.hpp"
#include "cudagraph/probe.hpp"
#include "drain/device_feed.hpp"
#include "plumb/clock.hpp"
#include "plumb/record.hpp"
#include "plumb/result.hpp"
#include "recording/node_names.hpp"

struct CUgraph_st;

namespace plumb::cudagraph {

/// Whose graphs: one implementation over two tables of calls.
enum class GraphApi : std::uint8_t { cuda, hip };
enum class ProbeKind : std::uint8_t { automatic, event, stamp, off };

struct ProbeOptions {
    GraphApi api = GraphApi::cuda;
    /// automatic: whichever stamp costs less in a replay here. off: replays are counted, not looked into.
    ProbeKind kind = ProbeKind::automatic;
    std::uint64_t every = 0;             // one replay out of so many is sampled; 0: as often as costs 1 % of a step
    std::size_t max_stamps = 512;        // in one twin; layers beyond it take turns
    std::uint32_t samples_per_turn = 12; // of one group of layers, before the next has its turn
    std::uint64_t max_twin_bytes = std::uint64_t{256} << 20; // of all twins of one device, as far as is estimated
    std::size_t max_rows = 8192; // keys in the recording; later ones are launched plainly and not described
    /// What names the nodes of a graph in which no scope was captured; null: they stay in no brick.
    Result<recording::NameNodes> (*naming)() = nullptr;
    const HostClock* host_clock = nullptr; // injected; null: this machine's. Must outlive every probe
};

class GraphEntry;
class ProbesState;
struct CapturedGraph;

/// The recorder ends: what its scopes noted in captures that nobody asked for is forgotten.
void forget_recorder(const Recorder& recorder);

class GraphProbes final : public drain::DeviceFeed {
  public:
    GraphProbes(Recorder& recorder, ProbeOptions options);
    /// Ends the worker and destroys the twins; waits at most a second for replays of twins that are still in flight.
    ~GraphProbes() override;
    GraphProbes(const GraphProbes&) = delete;
    GraphProbes& operator=(const GraphProbes&) = delete;

    /// Takes the scopes noted while `graph` was captured. Replaces the probe of that key, whose twin goes.
    /// Error unavailable without a driver, invalid_argument for a null graph; the driver's own answer where it cannot
    /// enumerate the graph. A graph that cannot be cloned gets a probe that launches plainly; its row says why.
    [[nodiscard]] Result<std::shared_ptr<Probe>> captured(std::uint64_t key, CUgraph_st* graph);
    /// The twin goes as soon as its last launch has completed. False: there is no such key.
    bool dropped(std::uint64_t key);
    /// The same, counted as an eviction. Waits until nothing of ours holds what the graph held, at most a second; not for a
    /// twin that is still in flight.
    void evicted(std::uint64_t key);
    /// All of them, and those that were dropped before: waits for twins in flight too. Error pending: not in that time.
    [[nodiscard]] Status evicted_all(std::chrono::milliseconds timeout);

    /// Where captures, launches and all that is measured of a key are counted; the graph cache adds what it alone knows.
    [[nodiscard]] GraphLedger& ledger() noexcept { return *ledger_; }

    /// Accounts are handed over at most once a second, but for those that changed in kind.
    void collect(drain::FeedRound& round) override;
    /// The next collect() hands over every account that changed: before a flush, a snapshot and the end.
    void publish_all() noexcept;
    [[nodiscard]] std::uint64_t unresolved() const noexcept override;

    /// True after an error that leaves the CUDA context unusable: no driver call of ours is made any more.
    [[nodiscard]] bool lost() const noexcept;
    /// Why, and what was left behind; also what an eviction or the end could not free.
    [[nodiscard]] Status status() const;

    /// Waits until nothing is left to build, calibrate or destroy that does not wait for the device. False: timed out.
    [[nodiscard]] bool settle(std::chrono::milliseconds timeout);
    /// In a forked child: no driver call is made any more, nothing is freed.
    void abandon() noexcept;

  private:
    std::shared_ptr<GraphEntry> take(std::uint64_t key);
    Status look_at(CUgraph_st* graph, CapturedGraph& captured);

    std::shared_ptr<GraphLedger> ledger_;
    std::shared_ptr<ProbesState> state_; // null: no driver
    Error missing_;
    std::atomic<bool> publish_all_{false}; // relaxed: a request that orders nothing
};

} // namespace plumb::cudagraph
