// SPDX-License-Identifier: Apache-2.0
// What ran on devices, as a Perfetto trace has it: an event for each slice, in a hardware queue for each lane of a track, with
// name and layer as its stage. Owned by one exporter call; one thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/launch_arrows.hpp"
#include "export/perfetto_packets.hpp"
#include "export/span_lanes.hpp"
#include "export/words.hpp"

namespace plumb::exporting {

class PerfettoDevices {
  public:
    /// Borrows all of them.
    PerfettoDevices(PerfettoPackets& packets, const NameWords& names, LaunchArrows& arrows, std::uint64_t pid)
        : packets_(packets), names_(names), arrows_(arrows), pid_(pid) {}

    /// `clock`: the name of the clock of its stamps, which names the device.
    void add_track(const recording::TrackInfo& info, const std::string& clock);
    [[nodiscard]] bool has(std::uint32_t track) const { return tracks_.contains(track); }
    /// REQUIRES: has(sample.track), and a time that is not negative.
    void write(const resolve::Sample& sample, std::span<const resolve::Launch> launches);
    /// A kernel or transfer with a time of its own that a program recorded, in a queue named for the thread that did.
    void write(const resolve::RecordedNode& node, std::uint16_t name, const std::string& thread);

  private:
    using Work = std::array<double, 3>; // bytes, flops, elements

    struct Stage {
        std::uint32_t iid = 0;
        Work work; // as its description says it
    };
    struct Lane : Sequence {
        std::unordered_map<std::uint32_t, Stage> stages; // by name and layer
    };
    struct Track {
        std::string name, description;
        std::uint64_t gpu = 0, api = 0;
        SpanLanes places;
        std::vector<Lane> lanes;
    };
    struct Event {
        std::int64_t begin_ns, duration_ns;
        std::uint64_t id, step;
        std::uint16_t name;
        std::optional<std::uint32_t> layer;
        Work work;
    };

    [[nodiscard]] std::uint64_t gpu_of(const std::string& clock);
    Lane& lane_of(Track& track, std::int64_t begin_ns, std::int64_t duration_ns);
    const Stage& stage_of(Lane& lane, const Event& event);
    [[nodiscard]] std::uint64_t new_id(std::uint64_t step);
    /// `more`: further fields of the event.
    void write(Track& track, const Event& event, const std::string& more);

    PerfettoPackets& packets_;
    const NameWords& names_;
    LaunchArrows& arrows_;
    std::uint64_t pid_;
    std::unordered_map<std::uint32_t, Track> tracks_;
    std::map<std::uint32_t, Track> recorded_;   // by the thread that recorded it
    std::map<std::string, std::uint64_t> gpus_; // by clock
    std::set<std::uint64_t> taken_gpus_;
    // Of events that nothing in the trace submitted.
    std::uint64_t next_id_ = 0;
    std::uint64_t last_step_ = resolve::no_step; // that one of them was of
};

} // namespace plumb::exporting
