// SPDX-License-Identifier: Apache-2.0
// What threads did, as a Perfetto trace has it: begins and ends on a track for each lane. Slices are held until nothing can lie
// around them any more, a step at a time. Owned by one exporter call; one thread.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "export/launch_arrows.hpp"
#include "export/perfetto_packets.hpp"
#include "export/slice_trees.hpp"
#include "export/words.hpp"

namespace plumb::exporting {

class PerfettoThreads {
  public:
    /// Borrows all of them. A pid of 0 is not known.
    PerfettoThreads(PerfettoPackets& packets, const NameWords& names, LaunchArrows& arrows, std::uint64_t pid)
        : packets_(packets), names_(names), arrows_(arrows), pid_(pid) {}

    void add_track(const recording::TrackInfo& info);
    /// Of both, and of nodes: REQUIRES a time that is not negative.
    void add(const resolve::Sample& sample);
    void add(const resolve::Submission& submission);
    /// What only was told, as a moment.
    void write(const resolve::RecordedNode& node, std::uint16_t name);
    /// After each batch: writes what is held, where that is much.
    void keep_bounded();
    void flush();

    [[nodiscard]] const std::string& name_of(std::uint32_t track) { return track_of(track).name; }
    /// Slices that found no lane. Call it after flush().
    [[nodiscard]] std::uint64_t left_out() const;

  private:
    enum class What : std::uint8_t { scope, layer, step, submit, launch };

    struct Slice {
        std::int64_t begin_ns = 0, end_ns = 0;
        std::uint64_t step = resolve::no_step;
        std::uint64_t number = 0; // of a submission
        std::uint32_t layer_plus_one = 0;
        std::uint32_t notes_at = 0; // annotations, as fields already
        std::uint16_t notes_size = 0;
        std::uint16_t name = 0;
        Phase phase = Phase::none;
        What what = What::scope;
        bool lap = false;
        bool warmup = false;
    };

    /// One row of slices, or several under one another, of one thread.
    struct Lane : Sequence {
        std::vector<std::uint32_t> iid_of_name, iid_of_layer, iid_of_launch; // 0: not said
        std::set<std::uint64_t> categories;                                  // said
        std::uint32_t names = 0;
    };
    struct Track {
        std::string name;
        std::uint64_t uuid = 0;
        std::uint64_t step = resolve::no_step; // of the slices held
        SliceTrees<Slice> scopes, spans, submitted;
        std::vector<Lane> scope_lanes, span_lanes, submitted_lanes;
    };

    Track& track_of(std::uint32_t id);
    void add_notes(Slice& slice, const resolve::Sample& sample);
    void keep_notes(Slice& slice, std::string_view fields);
    void flush(Track& track);
    void flush(Track& track, SliceTrees<Slice>& slices, std::vector<Lane>& lanes, const char* what);
    void add_lane(const Track& track, std::vector<Lane>& lanes, const std::string& what, std::int64_t now_ns);
    template <class Name>
    std::uint32_t iid_of(Lane& lane, std::vector<std::uint32_t>& known, std::size_t index, const Name& name);
    void say_category(Lane& lane, std::uint64_t iid, std::string_view word);
    [[nodiscard]] std::uint64_t category_of(std::uint16_t name);
    struct Words {
        std::uint32_t name = 0; // 0: a step, which is named by its number
        std::uint64_t category = 0;
    };
    Words words_of(Lane& lane, const Slice& slice);
    void write_begin(Lane& lane, const Slice& slice, const Slice* parent);
    void write_end(Lane& lane, const Slice& slice);
    static void put_place(ProtoPen& pen, const Slice& slice, const Slice* parent);

    PerfettoPackets& packets_;
    const NameWords& names_;
    LaunchArrows& arrows_;
    std::uint64_t pid_;
    std::unordered_map<std::uint32_t, Track> tracks_;
    std::set<std::uint64_t> os_threads_;
    std::vector<std::uint8_t> category_of_name_; // plus one
    std::string notes_;                          // annotations of the slices held
    std::size_t held_ = 0;
};

} // namespace plumb::exporting
