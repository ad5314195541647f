// SPDX-License-Identifier: Apache-2.0
// Device times that do not come from a QueueTimer's tokens: whoever has some (graph probes) hands them to the drain.
// Owned by its maker, who takes it out of the drain before it dies. Thread rule: collect() from the drain thread only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plumb/backend.hpp"
#include "recording/recording.hpp"

namespace plumb::drain {

/// One resolved scope of a device track, in ticks of that track's clock. Children come before their parents.
struct DeviceSample {
    std::uint32_t track = 0;
    std::uint16_t name = 0;
    bool lap = false;
    bool has_work = false;
    std::uint64_t step_plus_one = 0;
    std::uint16_t layer_plus_one = 0;
    std::uint32_t flags = 0; // of a DeviceSpan
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = 0;
    Work work{};
};

/// A track that a feed adds: TrackInfo::clock is filled in by the drain from the clock's name.
struct FeedTrack {
    recording::TrackInfo info;
    std::string clock_name;      // "cuda:0": the same name is the same clock
    QueueTimer* clock = nullptr; // gives pairs of that clock; null when some queue of it is known already
};

struct FeedRound {
    std::vector<FeedTrack> tracks; // before their samples
    std::vector<DeviceSample> samples;
    std::vector<recording::GraphInfo> graphs; // rows that changed
    std::vector<recording::TensorCheck> checks;
    std::uint64_t cpu_ns = 0; // that threads of the feeds' own took since the last round
};

class DeviceFeed {
  public:
    virtual ~DeviceFeed() = default;
    /// Adds what is new. Never waits for a device. What was handed over is the drain's.
    virtual void collect(FeedRound& round) = 0;
    /// Samples taken that have not been handed over yet, or never will be.
    [[nodiscard]] virtual std::uint64_t unresolved() const noexcept = 0;
    /// Tensors that were to be checked and were not.
    [[nodiscard]] virtual std::uint64_t dropped_checks() const noexcept { return 0; }
};

} // namespace plumb::drain
