// SPDX-License-Identifier: Apache-2.0
// What a Session's GraphProbes and its probes share, and the thread that builds twins: probes keep it alive when they
// outlive the Session. Thread rule: any thread, but for what says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "clock/host_clock.hpp"
#include "cudagraph/graph_device.hpp"
#include "cudagraph/memory_estimate.hpp"
#include "cudagraph/probes.hpp"

namespace plumb::cudagraph {

class GraphEntry;

class ProbesState : public std::enable_shared_from_this<ProbesState> {
  public:
    ProbesState(Recorder& recorder, const ProbeOptions& options, const backends::cuda::Driver& driver,
                std::shared_ptr<GraphLedger> ledger);
    ~ProbesState();

    [[nodiscard]] const backends::cuda::Driver& driver() const noexcept { return driver_; }
    [[nodiscard]] const ProbeOptions& options() const noexcept { return options_; }
    [[nodiscard]] Recorder& recorder() const noexcept { return recorder_; }
    /// False once the Session is gone, in a forked child, and while recording is off: launch plainly, touch nothing.
    [[nodiscard]] bool recording() const noexcept {
        return open_.load(std::memory_order_acquire) && recorder_.enabled();
    }
    [[nodiscard]] bool open() const noexcept { return open_.load(std::memory_order_acquire); }
    [[nodiscard]] std::int64_t now_ns() const noexcept { return clock::now_ns(clock_).value; }
    [[nodiscard]] GraphLedger& ledger() noexcept { return *ledger_; }

    /// The device of a context; null: of the calling thread's current one.
    [[nodiscard]] Result<std::shared_ptr<GraphDevice>> device_of(backends::cuda::Context context);
    /// Replaces the entry of the key; the old one is retired. Starts the worker.
    void put(std::shared_ptr<GraphEntry> entry);
    /// Null: there was none.
    std::shared_ptr<GraphEntry> remove(std::uint64_t key);
    [[nodiscard]] std::vector<std::uint64_t> keys() const;
    [[nodiscard]] std::vector<std::shared_ptr<GraphEntry>> retired() const;
    /// What is in flight: waited for, or left to its end.
    enum class Flight : std::uint8_t { leave, wait };
    /// Waits until clones and twins of these retired entries are destroyed. Returns how many of them are not.
    std::size_t let_go(const std::vector<std::shared_ptr<GraphEntry>>& entries, Flight flight,
                       std::chrono::milliseconds timeout);

    /// The worker reads and works on this one from its next round on, until it is at rest. Callable from launches.
    void attend(GraphEntry& entry);
    /// Something is to be done by the worker. Callable from launches: takes no lock that is held long.
    void wake() noexcept;
    /// A replay with events around it was enqueued.
    void sample_pending() noexcept;

    // Samples on their way to the drain.
    void hand_over(std::vector<drain::DeviceSample> samples);
    void announce(drain::FeedTrack track);
    void collect(drain::FeedRound& round, bool all);
    std::atomic<std::uint64_t> unresolved{0}; // relaxed: a figure

    void leaked(const std::string& what);
    [[nodiscard]] Status status() const;
    [[nodiscard]] bool lost() const; // some device
    /// Every device whose context was not just destroyed, and one at least: no call can succeed any more.
    [[nodiscard]] bool all_lost() const;

    // Memory of twins: by the worker, with the device's context current.
    [[nodiscard]] std::uint64_t free_bytes() const;
    /// True: one of so many bytes may be built now. False: ask again in the next round. Error: it never may.
    [[nodiscard]] Result<bool> room_for_twin(const GraphDevice& device, std::uint64_t bytes);
    MemoryEstimate twin_memory;

    /// Odd while the worker is in calls that may hold up whoever launches; changes with each of them.
    [[nodiscard]] std::uint64_t heavy_calls() const noexcept { return heavy_calls_.load(std::memory_order_acquire); }
    struct HeavyCalls {
        explicit HeavyCalls(ProbesState& of) : state(of) { state.heavy_calls_.fetch_add(1, std::memory_order_release); }
        ~HeavyCalls() { state.heavy_calls_.fetch_add(1, std::memory_order_release); }
        HeavyCalls(const HeavyCalls&) = delete;
        HeavyCalls& operator=(const HeavyCalls&) = delete;
        ProbesState& state;
    };

    bool settle(std::chrono::milliseconds timeout);
    void close();
    /// In a forked child: never ends from now on. Allocates nothing.
    void abandon() noexcept;

  private:
    void run();
    bool round(); // true: there is more to be done that waits for nothing
    [[nodiscard]] std::vector<std::shared_ptr<GraphEntry>> entries();
    void retire_locked(std::shared_ptr<GraphEntry> entry);
    [[nodiscard]] std::vector<std::shared_ptr<GraphEntry>> read_samples(); // of those that are attended to
    bool let_rest();
    void forget_finished();
    void tend_clocks();
    void tend_memory();
    [[nodiscard]] std::vector<std::shared_ptr<GraphDevice>> devices() const;
    std::shared_ptr<GraphEntry> least_used(const GraphDevice& device, bool at_any_cost);

    Recorder& recorder_;
    const ProbeOptions options_;
    const backends::cuda::Driver& driver_;
    const clock::HostClockSource clock_;
    std::atomic<bool> open_{true}; // release in close(): a launch that sees it uses the recorder no more
    const std::shared_ptr<GraphLedger> ledger_;

    mutable std::mutex mutex_; // guards what follows; never held around a driver call
    std::map<std::uint64_t, std::shared_ptr<GraphEntry>> current_;
    std::vector<std::shared_ptr<GraphEntry>> retired_; // until their twins are gone
    std::vector<std::shared_ptr<GraphDevice>> devices_;
    std::vector<std::shared_ptr<GraphEntry>> arrivals_; // attended to from now on
    std::vector<drain::DeviceSample> samples_;
    std::vector<drain::FeedTrack> tracks_;
    std::vector<std::string> leaked_;

    std::atomic<std::uint64_t> heavy_calls_{0};
    std::vector<const GraphDevice*> full_; // in this round; the worker's
    std::int64_t next_look_ns_ = 0;        // at the memory; the worker's

    std::mutex reading_; // one reader of samples at a time: the drain or the worker. Guards the next
    std::vector<std::shared_ptr<GraphEntry>> attended_;

    std::mutex worker_mutex_; // guards what follows
    std::condition_variable to_worker_;
    std::condition_variable from_worker_;
    std::thread worker_;
    bool stop_ = false;
    bool started_ = false;
    std::uint64_t requests_ = 0;
    std::uint64_t answered_ = 0;                  // requests that a finished round has seen
    std::atomic<bool> pending_{false};            // relaxed: a hint to look sooner
    std::atomic<std::uint64_t> worker_cpu_ns_{0}; // while something is recorded, and not handed over yet

    std::shared_ptr<ProbesState> abandoned_; // itself, in a forked child
};

} // namespace plumb::cudagraph
