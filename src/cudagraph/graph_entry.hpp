// SPDX-License-Identifier: Apache-2.0
// One captured graph: what is in it, its twin, and which replay is sampled. Owned by the probes' state and by the handles
// that launch it. Thread rule: launch() from any thread; work() and read_samples() from one thread of ours each.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/capture_notes.hpp"
#include "cudagraph/probe.hpp"
#include "cudagraph/probes_state.hpp"
#include "cudagraph/sampling_rate.hpp"
#include "cudagraph/twin.hpp"
#include "fingerprint/cuda/captured_tensors.hpp"

namespace plumb::cudagraph {

/// What a capture told about a graph, and what a twin needs.
struct CapturedGraph {
    std::uint64_t key = 0;
    std::uint64_t capture = 0; // which one of that key: later ones own its figures
    std::shared_ptr<GraphAccount> account;
    std::shared_ptr<GraphDevice> device;                  // null: no twin
    TwinSource source;                                    // source.graph null: no twin
    std::vector<backends::cuda::ScopeNote> notes;         // those that ended and were read in full; frontiers are gone
    std::vector<ScopePlaces> places;                      // per note
    bool leaves_beside_programmatic = false;              // stamps that are leaves, and programmatic launches
    std::string no_twin;                                  // why: "n/a (memory nodes)"
    std::shared_ptr<fingerprint::CapturedTensors> checks; // PLUMB_TENSORs captured into it; null: none
};

class GraphEntry final : public Probe, public std::enable_shared_from_this<GraphEntry> {
  public:
    GraphEntry(std::shared_ptr<ProbesState> state, CapturedGraph graph);
    ~GraphEntry() override;

    Status launch(CUgraphExec_st* plain, CUstream_st* stream) noexcept override;
    [[nodiscard]] std::uint64_t key() const noexcept override { return graph_.key; }

    /// No twin any more: replays are plain from now on.
    void retire() noexcept;
    /// Builds, turns and destroys twins. True: something is left that does not wait for the device.
    bool work();
    [[nodiscard]] const GraphDevice* device() const noexcept { return graph_.device.get(); }
    /// Nothing is to be read, built, turned or destroyed until it is launched, retired or loses its twin.
    [[nodiscard]] bool at_rest() const;
    std::atomic<bool> attended{false}; // the state's: the worker has it in its list, or will
    // Its twin, where all of them take too much: when it was sampled last, whether it may go.
    [[nodiscard]] bool may_lose_twin(bool at_any_cost, std::int64_t unused_since_ns) const;
    [[nodiscard]] std::int64_t twin_used_ns() const;
    void lose_twin(const std::string& why);
    /// Clones or twins of it, which hold what the caller's graph held.
    [[nodiscard]] bool holds() const;
    /// A twin that was given up is still in flight.
    [[nodiscard]] bool waits_for_device() const;
    /// True once retired and everything of ours is given back (or listed as leaked).
    [[nodiscard]] bool finished() const;
    /// Reads replays that have completed.
    void read_samples();
    /// True while a replay with events around it is not read.
    [[nodiscard]] bool has_pending() const;
    /// The last resort of the end: what is still in flight is left behind.
    void give_up();

  private:
    /// A launch with an event before and one after it: plain, or of the twin.
    struct Shot {
        bool used = false;
        bool enqueued = false;      // false: some thread is enqueueing it
        bool unread = false;        // nothing but its completion matters
        std::shared_ptr<Twin> twin; // null: plain
        std::uint64_t number = 0;   // of the launch, from 1
        std::uint64_t replay = 0;   // of the twin, from 0
        std::uint64_t step_plus_one = 0;
        std::int64_t launched_ns = 0; // on the common clock, when the launch returned
        backends::cuda::Event before = nullptr;
        backends::cuda::Event after = nullptr;
        backends::cuda::Event copied = nullptr; // of a stamp twin: behind the copy of its ring
        bool ended = false;                     // something was recorded behind it
        QueueTimer* timer = nullptr;
    };
    static constexpr std::size_t plain_shots = 4;
    static constexpr std::size_t most_shots = plain_shots + Twin::ring_capacity;

    struct Launch {
        backends::cuda::CuResult result = backends::cuda::CuResult::success;
        std::uint16_t flags = 0;
    };

    [[nodiscard]] Queue queue_of(backends::cuda::Stream stream) noexcept;
    [[nodiscard]] Status answer(backends::cuda::CuResult result) const;
    void announce_checks(backends::cuda::Stream stream) noexcept;
    void learn_flags(backends::cuda::GraphExec plain);
    bool follow(backends::cuda::Stream stream);
    Shot* choose(std::uint64_t number, std::uint16_t& flags, bool in_order);
    Shot* free_shot(std::size_t first, std::size_t last);
    [[nodiscard]] bool wants_plain(std::uint64_t number) const;
    bool arm(Shot& shot, backends::cuda::Stream stream);
    void disarm(Shot& shot);
    [[nodiscard]] backends::cuda::CuResult record_end(Shot& shot, backends::cuda::Stream stream);
    Launch enqueue(Shot* shot, backends::cuda::GraphExec plain, backends::cuda::Stream stream);
    void drop_twin(const std::string& reason);
    [[nodiscard]] bool in_flight(const Twin& twin) const;

    bool completed(const Shot& shot);
    void read(Shot& shot);
    /// Of a replay, by the events around it.
    struct Outer {
        double ns = std::numeric_limits<double>::quiet_NaN();
        bool waited = false; // the wait for its launch is inside, or may be
    };
    [[nodiscard]] Outer outer_of(const Shot& shot);
    void learn_plain(const Shot& shot);
    Status learn_sample(const Shot& shot);
    void learn_frame(const Shot& shot, const ReplayReadings& readings);
    [[nodiscard]] bool reads_coarser(const Shot& shot) const;
    void learn_tick(const Shot& shot);
    /// Stamps of it waited for a place, or ran at other clocks: the figures of the others do not hold for it.
    [[nodiscard]] bool held_up(const Shot& shot, const ReplayReadings& readings, const Outer& outer) const;
    void describe_sampling();
    void deliver(const Shot& shot, const ReplayReadings& readings, std::uint64_t head, const SiteCost& cost);
    bool announce_track(QueueTimer* timer, ProbeKind kind);
    [[nodiscard]] SiteCost site_cost() const; // the caller holds mutex_
    [[nodiscard]] double tick_ns() const { return graph_.device->tick_ns(kind_); }

    void build_twin();
    [[nodiscard]] double brick_ns() const;      // the caller holds mutex_
    [[nodiscard]] ProbeKind best_kind() const;  // the same
    [[nodiscard]] bool has_coarse_twin() const; // the same
    void plan(ProbeKind kind);                  // the same
    void begin_turn();                          // the same
    [[nodiscard]] bool wants_frame() const;     // the same
    [[nodiscard]] StampPlans frame_plan() const;
    void give_up_frames();
    [[nodiscard]] bool wants_turn() const; // the caller holds mutex_
    void tell_device();                    // the same: after every change of its twins
    static constexpr std::uint32_t frame_samples = 4;
    static constexpr std::uint32_t most_frames = 3; // twins that are frames, of one capture
    void destroy_twins();
    void destroy_source();
    [[nodiscard]] bool needs_source() const;
    bool turn_twin();

    const std::shared_ptr<ProbesState> state_;
    CapturedGraph graph_;

    std::mutex enqueue_;       // around driver calls on the executables, in the order of launches; guards what follows
    std::uint64_t number_ = 0; // of launches
    std::uint64_t recorded_ = 0; // of those, while recording
    backends::cuda::GraphExec last_plain_ = nullptr;
    backends::cuda::Stream last_stream_ = nullptr; // of the last launch
    bool last_stream_known_ = false;
    backends::cuda::Event behind_last_ = nullptr; // recorded behind the last launch; null: nothing was
    std::uint64_t heavy_calls_seen_ = 0;
    bool elsewhere_ = false;   // launched on a stream of another context; the row says so
    bool queue_known_ = false; // with the next three: of the last stream
    backends::cuda::Stream queue_stream_ = nullptr;
    unsigned long long queue_stream_id_ = 0;
    Queue queue_;

    mutable std::mutex mutex_; // guards what follows; never around a driver call
    std::array<Shot, most_shots> shots_;
    std::shared_ptr<Twin> twin_;
    std::vector<std::shared_ptr<Twin>> retiring_;
    StampPlans plans_;
    SamplingRate rate_;
    unsigned long long plain_flags_ = 0; // of the caller's executable
    unsigned long long twin_flags_ = 0;  // of the one that the twin was built beside
    bool retired_ = false;
    bool wanted_ = false;  // replayed while recording: a twin is worth its memory
    bool refused_ = false; // no twin will be tried again
    bool turning_ = false; // the twin's stamps are being switched
    bool source_gone_ = false;
    std::uint64_t samples_ = 0;     // of this twin and those of its other turns
    std::uint64_t twin_bytes_ = 0;  // estimated
    std::int64_t twin_used_ns_ = 0; // when it was built or sampled last
    bool told_waits_ = false;       // with the next: what the device has counted
    std::uint64_t told_bytes_ = 0;
    ProbeKind kind_ = ProbeKind::event; // of the twin that the figures below are of
    bool framing_ = false;              // the twin is a frame, or the next one will be
    std::uint32_t frames_ = 0;
    std::uint32_t samples_of_turn_ = 0;
    std::size_t next_turn_ = 0;
    ClosureBook book_{0};  // without parts until a twin is planned
    Readings plain_spans_; // by outer events, with what wait there was: a step as it is
    Readings pairs_{96};
    SiteBook sites_;
    bool cost_was_known_ = false; // of a site, by enough readings
    TimerTick timer_tick_;        // of the readings since the tick was last learnt; readers of samples alone
    std::uint32_t track_ = 0;     // 0: none yet; readers of samples alone
    ProbeKind track_kind_ = ProbeKind::event;
};

} // namespace plumb::cudagraph
