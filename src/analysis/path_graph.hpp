// SPDX-License-Identifier: Apache-2.0
// One step as an execution graph: containment from step to scope, edges from program order, launches and the host's wait for
// the device (docs/reference/path.md says what is known and what is inferred). Owned by one report; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/captured_nodes.hpp"
#include "analysis/graph_table.hpp"
#include "analysis/path_step.hpp"
#include "analysis/program_order.hpp"
#include "resolve/name_table.hpp"

namespace plumb::analysis {

class PathGraph {
  public:
    /// What orders the scopes inside a replay.
    enum class ReplayOrder : std::uint8_t {
        edges, // of the captured graph, where they are known; else time
        time,  // what had ended when something began
    };

    /// REQUIRES: facts and step outlive it.
    PathGraph(const recording::RunFacts& facts, const PathStep& step, ReplayOrder order = ReplayOrder::edges);

    [[nodiscard]] Result<ExecGraph> build();
    [[nodiscard]] const std::vector<std::string>& tracks() const noexcept { return track_names_; }
    /// Sources of the times of each track, in the same order; empty where the recording does not say.
    /// Where a track's times come from, by the number of the track in the graph.
    struct Origin {
        std::string source; // "cuda_event"
        std::string place;  // "cuda:0", as place_of_track()
    };
    [[nodiscard]] const std::vector<Origin>& origins() const noexcept { return origins_; }
    [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
    /// Begin of the first to end of the last thing of the step.
    [[nodiscard]] std::int64_t span_ns() const noexcept { return last_ns_ - first_ns_; }
    /// How many kernels were recorded, by layer and brick.
    using KernelPlace = std::pair<std::optional<std::uint32_t>, std::string>;
    using KernelCounts = std::map<KernelPlace, std::uint64_t>;
    [[nodiscard]] const KernelCounts& kernels() const noexcept { return kernels_; }
    [[nodiscard]] const KernelCounts& device_scopes() const noexcept { return device_scopes_; } // leaves
    /// Kernels inside captured graphs, of all their replays in the step, the same way.
    [[nodiscard]] const KernelCounts& captured_kernels() const noexcept { return captured_kernels_; }
    /// Those of graphs whose nodes are not in the recording, by their scopes: nodes of any sort.
    [[nodiscard]] const KernelCounts& captured_nodes() const noexcept { return captured_nodes_; }
    /// Kernels recorded, graphs launched, and device scopes submitted in which no kernel was recorded.
    [[nodiscard]] std::uint64_t launches() const;
    [[nodiscard]] std::uint64_t graphs_launched() const noexcept { return graphs_launched_; }
    /// Numbers of the threads beside the step's own of which nothing says what waited for them.
    [[nodiscard]] std::set<std::uint32_t> not_waited_for() const;
    /// False: some replay was ordered by its edges.
    [[nodiscard]] bool ordered_by_time() const;

  private:
    using Item = ProgramOrder::Item;
    static constexpr std::size_t none = ~std::size_t{0};
    static constexpr const char* unattributed = "unattributed";

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
        const resolve::RecordedNode* recorded = nullptr; // instead of sample and submission
        std::vector<const resolve::RecordedNode*> held;  // told inside it, without a time of their own
        Interval* on_device = nullptr;                   // of a submission: what it began
        std::size_t submitted = none;                    // of what is recorded: the submission it lies in
        std::uint32_t launches_told = 0;                 // of a submission: kernels
        std::size_t replay = none;                       // of the launch of a captured graph: in replays_
        bool by_edges = false;                           // of a replay whose leaves its edges order
    };
    using Intervals = std::vector<Interval>;

    /// A thread was off the CPU until a device, or another thread, had ended something.
    struct Wait {
        analysis::Interval time;
        const Interval* ended = nullptr;
    };

    struct TrackData {
        std::uint32_t id = 0;
        std::uint32_t number = 0;
        bool device = false;
        std::uint32_t graph = GraphTable::none;
        std::uint64_t graph_key = 0; // where it holds scopes of a captured graph
        Intervals intervals;
        std::vector<const resolve::Sample*> spans;
        std::vector<const resolve::RecordedNode*> told; // without a time of their own
        std::vector<Item> order;                        // what is in program order on it
        std::vector<Wait> waits;                        // disjoint and in order
        bool waited_for = false;                        // by another thread, as far as anybody knows
    };

    /// One launch of a captured graph in the step.
    struct Replay {
        const resolve::Submission* submission = nullptr;
        Interval* launch = nullptr;            // null: it has no time
        const CapturedNodes* nodes = nullptr;  // null: not known
        TrackData* track = nullptr;            // of its scopes; null: not sampled
        std::vector<Interval*> scopes, leaves; // of these the second
        std::vector<Interval*> of_site;        // null: not timed in this replay
        bool by_edges = false;                 // they order its leaves
    };
    class ReplayEdges;

    void collect();
    void collect_nodes();
    void collect_replays();
    [[nodiscard]] const CapturedNodes* nodes_of(std::uint64_t key);
    void take_scopes(TrackData& track, const std::vector<Interval*>& launches);
    void match_sites(Replay& replay);
    void count_captured();
    void note_captures();
    void add_replays();
    NodeId add_border(const Replay& replay, const char* word, std::int64_t moment);
    std::vector<NodeId> add_captured(const Replay& replay);
    NodeId add_captured_node(const Replay& replay, std::size_t node, GraphNode made, const resolve::Sample* alone_in);
    void add_own_time(const Interval& interval);
    NodeId add_told_brick(const Replay& replay, std::uint32_t site, std::int64_t begin);
    /// A layer of a step: steps within the step have layers of their own.
    using LayerOfStep = std::pair<std::uint64_t, std::uint32_t>;
    [[nodiscard]] NodeId layer_node(std::uint32_t number, std::uint64_t step, std::optional<std::uint32_t> layer,
                                    std::int64_t begin);
    [[nodiscard]] NodeId step_node(std::uint64_t step) const;
    [[nodiscard]] static Interval* around(TrackData& track, std::int64_t moment);
    void place_told();
    void count_kernel(TrackData& track, const resolve::RecordedNode& recorded, const Interval* place);
    NodeId add_recorded(const TrackData& track, const resolve::RecordedNode& recorded, GraphNode node);
    void add_told(const TrackData& track, const resolve::RecordedNode& recorded, NodeId parent);
    void add_held(const TrackData& track, const Interval& interval, NodeId around_node);
    void add_loose();
    void add_dependencies();
    TrackData& track_of(std::uint32_t id);
    static void nest(Intervals& intervals, bool by_flag);
    void add_step();
    void add_host_intervals(TrackData& track);
    void add_device_intervals(TrackData& track);
    NodeId add_node(const TrackData& track, const Interval& interval, NodeId parent);
    NodeId add_task(const TrackData& track, const char* name, std::int64_t begin, std::int64_t end, NodeId parent);
    void add_what_it_holds(const TrackData& track, const Interval& interval);
    [[nodiscard]] static Interval interval_of(std::int64_t begin, std::int64_t duration, const resolve::Sample* sample,
                                              const resolve::Submission* submission);
    void add_spans(TrackData& track);
    void add_unattributed(TrackData& track);
    void add_gap(TrackData& track, std::int64_t begin, std::int64_t end, NodeId parent);
    void add_gap_part(TrackData& track, std::int64_t begin, std::int64_t end, NodeId parent);
    void match_launches();
    void link_scopes();
    void match_graphs();
    void link(Interval& submission, Interval& device);
    void measure_device_layers();
    void find_waits();
    void find_waits_of(TrackData& track, const std::vector<Interval*>& ended);
    [[nodiscard]] static std::vector<analysis::Interval> without_waits(const TrackData& track, std::int64_t begin,
                                                                       std::int64_t end);
    void add_leaf_parts(TrackData& track, Interval& interval, NodeId parent);
    void note_waits();
    void go_on_after(TrackData& track, std::int64_t moment, NodeId ended);
    void begin_after_step_thread(const TrackData& track);
    [[nodiscard]] bool is_waited_for(const TrackData& track) const;
    void note_threads();
    void find_device_end();
    void order_tracks();

    const recording::RunFacts& facts_;
    const PathStep& step_;
    const ReplayOrder replay_order_;
    resolve::NameTable names_;
    GraphTable graphs_;
    ExecGraphBuilder builder_;
    std::map<std::uint32_t, TrackData> tracks_; // by id, so that the result does not depend on anything else
    std::vector<std::string> track_names_;
    std::vector<Origin> origins_;
    std::vector<std::string> notes_;
    std::vector<std::pair<Interval*, Interval*>> launches_; // submission, what it began
    std::map<std::uint64_t, NodeId> steps_within_;          // by id
    std::map<LayerOfStep, NodeId> layers_;
    std::map<LayerOfStep, std::pair<std::int64_t, std::int64_t>> device_layers_; // begin and end of their scopes
    std::map<std::uint32_t, std::uint32_t> queue_of_graph_;                      // track of a graph -> queue it ran in
    std::map<resolve::NodeKey, NodeId> recorded_;
    std::vector<std::pair<const TrackData*, const resolve::RecordedNode*>> loose_; // told in no scope
    KernelCounts kernels_;
    KernelCounts device_scopes_;
    KernelCounts captured_kernels_, captured_nodes_;
    std::vector<Replay> replays_;                     // in the order of their launches
    std::map<std::uint64_t, CapturedNodes> contents_; // by key
    std::unordered_map<std::uint64_t, const recording::GraphInfo*> rows_of_graphs_;
    std::map<std::uint64_t, std::uint64_t> launches_of_graphs_; // by key
    std::uint64_t graphs_launched_ = 0;
    std::set<std::uint64_t> replaced_; // keys under which the step has samples of a graph that is gone
    NodeId root_ = no_node;
    std::uint32_t main_track_ = 0;
    std::int64_t first_ns_ = 0, last_ns_ = 0;
    std::int64_t device_end_ns_ = 0, last_submission_ns_ = 0, waited_ns_ = 0, slept_ns_ = 0;
    std::int64_t joined_ns_ = 0; // the step's thread slept until another thread had ended something
    NodeId last_on_device_ = no_node;
};

} // namespace plumb::analysis
