// SPDX-License-Identifier: Apache-2.0
// The working half of plumb::CudaGraphCache, where every function is described. Owned by it. Thread rule: any thread;
// the order of locks stands in cache_entry.hpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cudagraph/cache_entry.hpp"
#include "cudagraph/decode_states.hpp"
#include "cudagraph/graph_host.hpp"
#include "cudagraph/graph_shape.hpp"
#include "cudagraph/memory_estimate.hpp"
#include "cudagraph/replay_profile.hpp"
#include "fingerprint/cuda/fingerprint_ptx.hpp"
#include "plumb/clock.hpp"

namespace plumb::cudagraph {

class Cache {
  public:
    static constexpr std::size_t max_keys = 65536; // with a row; the oldest without a graph go beyond it

    /// `host` outlives the cache; null: there is no profiler, and the ledger is the cache's own. `driver` null: `why_missing` is what every call answers. `clock` null: the machine's.
    Cache(const cuda::Driver* driver, Error why_missing, CudaGraphOptions options, GraphHost* host,
          const HostClock* clock);
    ~Cache();
    Cache(const Cache&) = delete;
    Cache& operator=(const Cache&) = delete;

    Status begin_capture(cuda::Stream stream);
    Status end_capture(std::uint64_t key);
    Status abort_capture();
    Result<bool> replay(std::uint64_t key, cuda::Stream stream);
    bool invalidate(std::uint64_t key);
    void invalidate_all();
    Result<std::vector<BakedIn>> verify_capture(std::uint64_t key, cuda::Stream stream,
                                                const Callback<Status(std::int32_t, std::int32_t)>& step,
                                                const CudaVerifyOptions& options);
    Result<std::vector<StaleInput>> verify_replay(std::uint64_t key, cuda::Stream stream, const CudaReplayCheck& check);
    void note_eager(std::uint64_t key, const std::string& reason);
    void note_padding(std::uint64_t key, std::uint64_t used, std::uint64_t padded);

    [[nodiscard]] std::size_t size() const;
    [[nodiscard]] std::uint64_t bytes() const;
    [[nodiscard]] std::vector<CudaGraphRow> rows() const;
    Status flush_profile() { return profile_.flush(false); }
    [[nodiscard]] bool lost() const noexcept { return driver_.lost(); }
    [[nodiscard]] Status status();

    DecodeStates& decode_states() noexcept { return states_; }
    std::atomic<bool> use_device_state{true}; // relaxed: a setting
    /// Of the fingerprint kernels; tests give their own. Set before the first use.
    fingerprint::KernelText fingerprint_image = fingerprint::fingerprint_ptx;

  private:
    struct Capture {
        cuda::Stream stream = nullptr;
        cuda::Context context = nullptr;
        unsigned long long id = 0;
        std::int64_t begin_ns = 0;
        bool begun = false;
    };
    struct Victim {
        std::shared_ptr<CacheEntry> entry;
        std::shared_ptr<Executable> exec;
    };
    /// A captured graph on its way into the cache.
    struct Arrival {
        GraphHolder graph;
        const GraphShape& shape;
        cuda::Stream stream;
        cuda::Context context;
        std::uint64_t bytes;
        double capture_ns;
        double instantiate_ns = 0;
        double upload_ns = 0;
        bool uploaded = false;
        bool updated = false;
        bool instantiated = false;
    };

    // captures.cpp
    Status begin_on_stream(Capture& capture);
    Result<Capture> take_capture();
    Result<GraphHolder> end_stream(const Capture& capture);
    Result<GraphHolder> capture_step(cuda::Stream stream, const Callback<Status()>& step);

    // verify_replay.cpp
    struct Found;
    Status can_verify(cuda::Stream stream, const CudaReplayCheck& check);
    Status run_rounds(CacheEntry& entry, cuda::Stream stream, const CudaReplayCheck& check, std::vector<Found>& found);
    std::string name_node(const Executable& exec, cuda::Stream stream, const CudaReplayCheck& check,
                          const Found& found);

    // admission.cpp
    Status settle(const std::shared_ptr<CacheEntry>& entry, Arrival& arrival);
    Status admit(std::uint64_t key, GraphHolder graph, const Capture& capture, double capture_ns);
    Result<std::shared_ptr<Executable>> instantiate(Arrival& arrival);
    Result<bool> update_in_place(CacheEntry& entry, Executable& live, Arrival& arrival);
    Status upload(cuda::GraphExec exec, Arrival& arrival);
    void tell_captured(CacheEntry& entry, const std::shared_ptr<Executable>& exec, const GraphShape& shape);
    void count_arrival(CacheEntry& entry, const Arrival& arrival);

    // graph_cache.cpp
    std::shared_ptr<CacheEntry> find(std::uint64_t key) const;
    std::shared_ptr<CacheEntry> find_or_make(std::uint64_t key);
    void forget_old_keys();
    [[nodiscard]] bool over_bounds() const;
    void publish(const std::shared_ptr<CacheEntry>& entry, std::shared_ptr<Executable> exec, std::uint64_t bytes);
    std::shared_ptr<Executable> withdraw(CacheEntry& entry, Absence absence);
    std::shared_ptr<CacheEntry> least_recent(const CacheEntry* but) const;
    std::vector<Victim> trim(const CacheEntry* keep);
    void unpin(CacheEntry& entry);
    void dismiss(const std::vector<Victim>& victims);
    [[nodiscard]] std::uint64_t live_bytes() const;
    void dismiss(CacheEntry& entry, const std::shared_ptr<Executable>& exec, Absence absence);
    bool drop(CacheEntry& entry, Absence absence);
    void abandon();

    // replays.cpp
    struct Launched {
        Status status;
        bool profiled = false;
        std::int64_t upload_ns = -1;
        std::int64_t launch_ns = 0;
        ReplaySample sample;
    };
    bool missing(CacheEntry& entry, Absence absence);
    Launched launch(CacheEntry& entry, Executable& exec, cuda::Stream stream);
    [[nodiscard]] bool captured(cuda::Stream stream) const noexcept;
    Status wait(cuda::Stream stream, Launched& launched);
    void launch_failed(CacheEntry& entry, const Executable& exec);
    [[nodiscard]] std::int64_t now_ns() const noexcept;

    GuardedDriver driver_;
    const CudaGraphOptions options_;
    GraphHost* const host_;
    GraphLedger own_ledger_{0};
    const HostClock* const host_clock_;
    MemoryEstimate estimate_;
    DecodeStates states_;
    ReplayProfile profile_;
    std::atomic<unsigned> instantiating_{0};
    std::atomic<std::uint64_t> use_{0}; // gives last_use
    std::atomic<bool> abandoned_{false};

    std::mutex captures_mutex_; // never held around a driver call
    std::unordered_map<std::thread::id, Capture> captures_;

    mutable std::shared_mutex map_; // guards what follows; never held around a driver call
    std::unordered_map<std::uint64_t, std::shared_ptr<CacheEntry>> entries_;
    std::vector<std::shared_ptr<CacheEntry>> live_;
};

} // namespace plumb::cudagraph
