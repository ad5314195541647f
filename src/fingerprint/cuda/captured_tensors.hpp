// SPDX-License-Identifier: Apache-2.0
// The checks of one captured graph: fixed slots per check, which replay n writes at n mod their number. Whoever launches
// the graph announces each launch in its stream, by a number that the checks of that replay carry: so a result says which
// step it belongs to, and those of a launch that nobody announced say that nobody did.
// Shared by the session's checks and by probes. Thread rule: any thread; announce() of one graph by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "fingerprint/cuda/tensor_device.hpp"
#include "plumb/record.hpp"
#include "recording/recording.hpp"

namespace plumb::fingerprint {

/// What is known of a launch.
struct AnnouncedLaunch {
    std::uint64_t step_plus_one = 0;
    Phase phase = Phase::none;
    std::int64_t position = -1; // of the step's first token
};

class CapturedTensors {
  public:
    static constexpr std::uint32_t slots_of_site = 32;

    CapturedTensors(TensorDevice& device, const Recorder* of_recorder, unsigned long long of_capture,
                    backends::cuda::Graph of_graph, std::uint32_t group)
        : recorder(of_recorder), capture(of_capture), graph(of_graph), device_(device), group_(group) {}
    CapturedTensors(const CapturedTensors&) = delete;
    CapturedTensors& operator=(const CapturedTensors&) = delete;

    const Recorder* const recorder;
    const unsigned long long capture;
    const backends::cuda::Graph graph;

    /// Before the launch. While the stream itself is captured, and where the launch before it was on another stream, the
    /// replay stays without a step. Costs one kernel of one thread.
    void announce(backends::cuda::Stream stream, const AnnouncedLaunch& launch) noexcept;
    /// What was announced last was not launched.
    void withdraw() noexcept;
    void set_key(std::uint64_t key) noexcept;

    /// Takes slots and a site for a check, and adds its node to the capture. A failure is counted.
    Status add(backends::cuda::Stream stream, const KernelTensor& tensor, recording::TensorCheck label,
               std::int64_t position_of_step);
    /// Adds what the device has finished. REQUIRES: the device is alive.
    void harvest(std::vector<recording::TensorCheck>& done);

    /// A check as it is in the graph, and its newest result that was harvested.
    struct Latest {
        recording::TensorCheck check;
        backends::cuda::GraphNode node = nullptr; // null: not known
    };
    [[nodiscard]] std::vector<Latest> latest() const;
    /// Of its checks, those that are known: a graph without them is another one with the same handle.
    [[nodiscard]] std::vector<backends::cuda::GraphNode> nodes() const;

    struct Counts {
        std::size_t sites = 0;
        std::uint64_t read = 0;
        std::uint64_t unread = 0;  // overwritten by later replays before anybody looked
        std::uint64_t pending = 0; // announced and not finished
        std::uint64_t refused = 0; // checks of the capture that have no site
    };
    [[nodiscard]] Counts counts() const noexcept;
    /// The graph is gone, and was never launched: its sites are used again.
    void discard() noexcept;
    /// Its slots are read no more.
    void close() noexcept;

    [[nodiscard]] TensorDevice& device() const noexcept { return device_; }

  private:
    struct Site {
        recording::TensorCheck label;
        std::int64_t position_offset = 0;
        bool has_position = false;
        SlotBlock slots;
        DeviceSite site;
        backends::cuda::GraphNode node = nullptr;
        std::uint64_t next = 0; // number of the result to read next
        std::uint64_t read = 0;
        std::uint64_t unread = 0;
        bool seen = false;
        recording::TensorCheck newest;
    };
    struct Launch {
        std::uint64_t tag = 0;
        std::uint64_t order = 0; // of its first check
        AnnouncedLaunch what;
    };
    using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint16_t, TensorRole>;

    static constexpr std::size_t most_launches = 4096; // in flight, or read late

    Status try_add(backends::cuda::Stream stream, const KernelTensor& tensor, recording::TensorCheck&& label,
                   std::int64_t position_of_step);
    void harvest_site(Site& site, std::vector<recording::TensorCheck>& done);
    [[nodiscard]] recording::TensorCheck check_of(const Site& site, SlotResult&& result) const;

    TensorDevice& device_;
    const std::uint32_t group_;

    mutable std::mutex mutex_; // guards what follows; never held around a driver call
    std::vector<Site> sites_;
    std::map<Place, std::uint32_t> occurrences_;
    std::deque<Launch> launches_;
    std::uint64_t announced_ = 0;
    std::uint64_t refused_ = 0;
    std::uint64_t key_ = 0;
    backends::cuda::Stream stream_ = nullptr; // of the last launch
    bool launched_ = false;
    bool withdrawable_ = false;
    bool closed_ = false;
};

/// The checks that were captured last into a graph with that handle, by that recorder (null: any); null: there are none.
std::shared_ptr<CapturedTensors> find_captured_tensors(const Recorder* recorder, backends::cuda::Graph graph);
/// The capture's graph is gone without a launch. The id is that of cuStreamGetCaptureInfo; all recorders'.
void discard_captured_tensors(unsigned long long capture) noexcept;

/// Results of a thread's eager checks, copied for whoever wants them at once. One at a time per thread; made, harvested
/// and destroyed by it.
class TensorTap {
  public:
    TensorTap();
    ~TensorTap();
    TensorTap(const TensorTap&) = delete;
    TensorTap& operator=(const TensorTap&) = delete;

    /// What this thread's eager checks gave, in the order of the calls. Complete once the device has finished them.
    std::vector<recording::TensorCheck> harvest();
    /// Eager checks of this thread that have no result yet (or never will).
    [[nodiscard]] std::size_t missing() const;

    struct Shared;

  private:
    std::shared_ptr<Shared> shared_;
};

} // namespace plumb::fingerprint
