// SPDX-License-Identifier: Apache-2.0
// What all probes of one CUDA context share: its timeline, stamp kernels, what stamps cost there, memory for the rings
// of stamp kernels. Shared by the probes; thread rule: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/stamp_module.hpp"
#include "backends/cuda/timeline.hpp"
#include "cudagraph/probes.hpp"

namespace plumb::cudagraph {

/// What stamp kernels write, in device memory: from the other side of the bus a stamp would take as long as a brick.
/// Freeing waits for the whole context, so that it is used again instead.
struct RingMemory {
    static constexpr std::size_t values_at = 64; // bytes: a cache line for the counter of replays, then the ring
    backends::cuda::DevicePointer device = 0;
    void* host = nullptr; // pinned, as large: takes copies of it
    std::size_t bytes = 0;
    [[nodiscard]] const std::uint64_t* values() const {
        return reinterpret_cast<const std::uint64_t*>(static_cast<const char*>(host) + values_at);
    }
};

/// What was not measured.
inline constexpr double unknown_cost = std::numeric_limits<double>::quiet_NaN();

/// What a thread of ours holds while it calls the driver: it disturbs no capture, and the context is current. Where the
/// context is gone the timeline is lost from here on.
struct OurThread {
    explicit OurThread(backends::cuda::Timeline& timeline)
        : relaxed(timeline.driver()), current(timeline.driver(), timeline.context()) {
        using backends::cuda::CuResult;
        const CuResult status = current.status();
        if (status != CuResult::success) {
            static_cast<void>(timeline.failed(
                status == CuResult::invalid_context ? CuResult::context_is_destroyed : status, "cuCtxPushCurrent"));
        }
    }
    backends::cuda::RelaxedCapture relaxed;
    backends::cuda::CurrentContext current;
};

class GraphDevice {
  public:
    explicit GraphDevice(std::shared_ptr<backends::cuda::Timeline> timeline) : timeline_(std::move(timeline)) {}
    GraphDevice(const GraphDevice&) = delete;
    GraphDevice& operator=(const GraphDevice&) = delete;

    [[nodiscard]] backends::cuda::Timeline& timeline() const noexcept { return *timeline_; }
    [[nodiscard]] const backends::cuda::Driver& driver() const noexcept { return timeline_->driver(); }

    /// Loads the stamp kernels, runs each once (drivers load them at their first use) and makes rings until so many that
    /// large are free: all that may wait for the device or hold up a launch. Any thread.
    void prepare(ProbeKind wanted, std::size_t ring_bytes, std::size_t rings) noexcept;
    /// Once (again while event nodes are not known), on our own thread, with the context current: loads the stamp kernels
    /// and measures what stamps cost. What fails stays unknown, and events are chosen.
    void calibrate(ProbeKind wanted);
    /// Ok unless event nodes are no good here; pending: not known yet. Only where calibrate() was called, by that thread.
    [[nodiscard]] const Status& event_nodes() const noexcept { return events_; }
    [[nodiscard]] bool calibrated() const noexcept { return calibrated_.load(std::memory_order_acquire); }
    // Valid once calibrated.
    /// Event or stamp: whichever costs less where graphs hold bricks of `brick_ns` (NaN: not known), but stamps only where
    /// their clock is as fine as that of events, or fine enough for such bricks.
    [[nodiscard]] ProbeKind kind_for(double brick_ns) const noexcept;
    /// What one stamp cost with another behind it, on a device that did nothing else; NaN: not measured.
    [[nodiscard]] double prior(ProbeKind kind) const noexcept { return kind == ProbeKind::stamp ? stamp_ : event_; }
    /// Of the clock that stamps of that kind read.
    [[nodiscard]] double tick_ns(ProbeKind kind) const noexcept;
    /// The timer of stamp kernels changes its tick, as when a profiler was there.
    void learn_stamp_tick(double ns) noexcept { stamp_tick_.store(ns, std::memory_order_relaxed); }
    /// Why there are no stamp kernels; empty: there are.
    [[nodiscard]] const std::string& no_stamps() const noexcept { return no_stamps_; }
    [[nodiscard]] const backends::cuda::StampModule* stamps() const noexcept { return module_; }

    /// Zeros on both sides. Waits for them to be written, so on a thread of ours alone.
    [[nodiscard]] Result<RingMemory> take_ring(std::size_t bytes);
    void return_ring(const RingMemory& ring);
    /// At the end, with the context current: frees the rings and the stream. True unless something was left behind.
    [[nodiscard]] bool close();

    // What its graphs tell. Relaxed: figures.
    std::atomic<std::size_t> waiting{0};      // have no twin yet and may get one
    std::atomic<std::uint64_t> twin_bytes{0}; // estimated, of all twins

  private:
    void run_stamps_once(const RingMemory& ring) noexcept;
    [[nodiscard]] Status make_ring(RingMemory& ring);
    [[nodiscard]] Status clear(const RingMemory& ring);
    [[nodiscard]] bool free_ring(const RingMemory& ring);

    const std::shared_ptr<backends::cuda::Timeline> timeline_;
    std::atomic<bool> calibrated_{false}; // release after what follows was written
    Status events_;
    ProbeKind wanted_ = ProbeKind::automatic;
    double event_ = unknown_cost;
    double stamp_ = unknown_cost;
    std::atomic<double> stamp_tick_{unknown_cost}; // relaxed: a figure
    std::string no_stamps_;
    const backends::cuda::StampModule* module_ = nullptr;
    std::mutex prepare_mutex_; // around driver calls; guards the next
    bool ran_stamps_ = false;
    std::mutex ring_mutex_;
    std::vector<RingMemory> free_rings_;
    std::vector<RingMemory> given_up_; // something may still write to them: freed at the end
};

} // namespace plumb::cudagraph
