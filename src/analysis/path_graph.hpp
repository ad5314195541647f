// SPDX-License-Identifier: Apache-2.0
// One step as an execution graph: containment from step to scope, edges from program order, launches and the host's wait for
// the device (docs/path.md says what is known and what is inferred). Owned by one report; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/graph_table.hpp"
#include "analysis/path_step.hpp"
#include "analysis/program_order.hpp"
#include "resolve/name_table.hpp"

namespace plumb::analysis {

class PathGraph {
  public:
    /// REQUIRES: source and step outlive it.
    PathGraph(resolve::RecordSource& source, const PathStep& step);

    [[nodiscard]] Result<ExecGraph> build();
    [[nodiscard]] const std::vector<std::string>& tracks() const noexcept { return track_names_; }
    [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
    /// Begin of the first to end of the last thing of the step.
    [[nodiscard]] std::int64_t span_ns() const noexcept { return last_ns_ - first_ns_; }

  private:
    using Item = ProgramOrder::Item;
    static constexpr std::size_t none = ~std::size_t{0};

    struct Interval {
        std::int64_t begin_ns = 0;
        std::int64_t end_ns = 0;
        const resolve::Sample* sample = nullptr;         // or
        const resolve::Submission* submission = nullptr; // one of them
        NodeId node = no_node;
        std::size_t outer = none; // in the same list
        bool leaf = true;
        std::int64_t split_ns = 0; // where the device began in the middle of the submission; 0: nowhere
        NodeId launched = no_node; // what the device waits for
    };
    using Intervals = std::vector<Interval>;

    struct TrackData {
        std::uint32_t id = 0;
        std::uint32_t number = 0;
        bool device = false;
        std::uint32_t graph = GraphTable::none;
        Intervals intervals;
        std::vector<const resolve::Sample*> spans;
        std::vector<Item> order; // what is in program order on it
    };

    void collect();
    TrackData& track_of(std::uint32_t id);
    static void nest(Intervals& intervals, bool by_flag);
    void add_step();
    void add_host_intervals(TrackData& track);
    void add_device_intervals(TrackData& track);
    NodeId add_node(const TrackData& track, const Interval& interval, NodeId parent);
    NodeId add_task(const TrackData& track, const char* name, std::int64_t begin, std::int64_t end, NodeId parent);
    void add_spans(TrackData& track);
    void add_unattributed(TrackData& track);
    void add_gap(TrackData& track, std::int64_t begin, std::int64_t end, NodeId parent);
    void match_launches();
    void match_scopes();
    void match_graphs();
    void link(Interval& submission, Interval& device);
    void measure_device_layers();
    [[nodiscard]] NodeId layer_node(const TrackData& track, const Interval& interval);
    void find_device_end();
    void order_tracks();
    void wait_for_device(TrackData& track);

    resolve::RecordSource& source_;
    const PathStep& step_;
    resolve::NameTable names_;
    GraphTable graphs_;
    ExecGraphBuilder builder_;
    std::map<std::uint32_t, TrackData> tracks_; // by id, so that the result does not depend on anything else
    std::vector<std::string> track_names_;
    std::vector<std::string> notes_;
    std::vector<std::pair<Interval*, Interval*>> launches_; // submission, what it began
    std::map<std::uint32_t, NodeId> layers_;
    std::map<std::uint32_t, std::pair<std::int64_t, std::int64_t>> device_layers_; // begin and end of their scopes
    std::map<std::uint32_t, std::uint32_t> queue_of_graph_; // track of a graph -> queue it ran in
    NodeId root_ = no_node;
    std::uint32_t main_track_ = 0;
    std::int64_t first_ns_ = 0, last_ns_ = 0;
    std::int64_t device_end_ns_ = 0, last_submission_ns_ = 0, waited_ns_ = 0;
    NodeId last_on_device_ = no_node;
};

} // namespace plumb::analysis
