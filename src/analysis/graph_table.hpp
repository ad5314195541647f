// SPDX-License-Identifier: Apache-2.0
// Captured graphs in a report: how often each was replayed in the counted steps, and the mean time of each of its sites;
// together they give sums per step though only some replays are sampled. Memory is bounded by a number of site groups.
// Owned by one report; one thread. REQUIRES: the source outlives it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plumb/results.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/sample.hpp"

namespace plumb::analysis {

class GraphTable {
  public:
    static constexpr std::uint32_t none = 0xffffffff;
    static constexpr std::uint32_t former = 0xfffffffe; // a graph that another has replaced under its key
    static constexpr std::size_t max_graphs = 16384;
    static constexpr std::size_t max_groups = std::size_t{1} << 18; // of sites, in all graphs

    /// REQUIRES: the facts outlive it.
    explicit GraphTable(const recording::RunFacts& facts);

    /// Dense number of the graph whose replays a track holds; none where it holds no such thing, former
    /// where it holds those of a graph whose sites are no longer known: they are left out.
    [[nodiscard]] std::uint32_t of_track(std::uint32_t track) const;
    [[nodiscard]] std::size_t size() const noexcept { return graphs_.size(); }
    [[nodiscard]] std::uint64_t key_of(std::uint32_t graph) const { return graphs_[graph].key; }
    /// Null where the recording has no life-cycle row.
    [[nodiscard]] const recording::GraphInfo* info_of(std::uint32_t graph) const { return graphs_[graph].info; }

    /// A sample of a former graph.
    void left_out(std::uint32_t track);
    /// By key.
    [[nodiscard]] const std::map<std::uint64_t, std::uint64_t>& left_out() const noexcept { return left_out_; }

    void launched(const resolve::Submission& launch);
    /// A sample that counts (warm-up apart).
    void add(std::uint32_t graph, unsigned source, const resolve::Sample& sample);
    /// What the graph's description says of a sample's site, else what nesting says.
    [[nodiscard]] bool is_leaf(std::uint32_t graph, const resolve::Sample& sample) const;

    /// Sites of one name and layer, laps apart: those of one group are always sampled together.
    struct Group {
        std::uint16_t name = 0;
        std::optional<std::uint32_t> layer;
        bool lap = false;
        bool leaf = true;
    };
    struct Wanted {
        Phase phase = Phase::none;
        unsigned source = 0;
        std::uint32_t graph = none;         // none: all
        std::optional<std::uint16_t> name;  // absent: all that `group` takes
        std::optional<std::uint32_t> layer; // absent: all
        bool lap = false;
        std::function<bool(const Group&)> group; // asked only where there is no name
    };
    struct Rate {
        double calls_per_step = 0;
        double sum_per_step_ns = 0;
        Figure raw_ns; // the sum with the cost of the stamps left in
        std::uint64_t sites = 0, sites_timed = 0;
    };
    /// Figures per step for `steps` counted steps of the phase.
    [[nodiscard]] Rate rate(const Wanted& wanted, std::uint64_t steps) const;

    /// The leaves of one replay, whoever timed them: sums are per replay, not per step.
    [[nodiscard]] Rate per_replay(std::uint32_t graph, Phase phase) const;

    /// In counted steps of the phase.
    [[nodiscard]] std::uint64_t replays(std::uint32_t graph, Phase phase) const {
        return graphs_[graph].replays[static_cast<std::size_t>(phase)];
    }
    [[nodiscard]] std::uint64_t replays(Phase phase) const;
    /// Of these, replays whose operations are scopes of queues.
    [[nodiscard]] std::uint64_t linked(Phase phase) const { return linked_[static_cast<std::size_t>(phase)]; }
    /// Launches, in steps of any kind, of replays whose idle time is not known.
    [[nodiscard]] bool launched_in(Phase phase) const { return launched_[static_cast<std::size_t>(phase)]; }
    [[nodiscard]] std::uint64_t sampled_replays(std::uint32_t graph, Phase phase) const {
        return graphs_[graph].sampled[static_cast<std::size_t>(phase)];
    }
    /// Number of a source that timed a graph in a phase; none where nothing did.
    [[nodiscard]] std::uint32_t source_of(std::uint32_t graph, Phase phase) const;
    /// Names with sites in graphs replayed in the phase, none of them ever timed there: name -> number of sites.
    [[nodiscard]] std::map<std::uint16_t, std::uint64_t> untimed(Phase phase) const;
    [[nodiscard]] std::uint64_t refused() const noexcept { return refused_; }

  private:
    struct Timed {
        std::uint64_t count = 0;
        double total_ns = 0;
    };
    struct Sites {
        Group group;
        std::uint64_t count = 0; // 0: sampled, though no description tells of it
    };
    struct Graph {
        std::uint64_t key = 0;
        const recording::GraphInfo* info = nullptr;
        std::array<std::uint64_t, 4> replays{}, sampled{};
        std::array<std::uint16_t, 4> sources{};         // by phase: a bit for each that timed it
        std::unordered_map<std::uint64_t, Sites> sites; // by packed group
        std::unordered_map<std::uint16_t, std::vector<std::uint64_t>> by_name;
        std::unordered_map<std::uint64_t, Timed> timed; // by packed group, phase and source
    };

    [[nodiscard]] std::uint32_t graph_of(std::uint64_t key);
    struct Sum {
        Rate rate;
        double raw = 0;
        bool cost_known = true;
    };
    /// The sites of a packed group; null beyond the limit.
    [[nodiscard]] Sites* sites_of(Graph& graph, std::uint64_t group, const Group& what);
    [[nodiscard]] static double share(const Graph& graph, std::uint64_t group, Phase phase, std::uint64_t count);
    [[nodiscard]] static Rate finish(const Sum& sum);
    static void add_rate(const Graph& graph, std::uint64_t group, const Wanted& wanted, double per_step, Sum& sum);
    static void add_graph(const Graph& graph, const Wanted& wanted, double per_step, Sum& sum);

    std::vector<Graph> graphs_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_key_;
    std::unordered_map<std::uint32_t, std::uint32_t> by_track_;
    std::unordered_map<std::uint32_t, std::uint64_t> former_tracks_; // to their keys
    std::map<std::uint64_t, std::uint64_t> left_out_;
    std::array<bool, 4> launched_{};
    std::array<std::uint64_t, 4> linked_{};
    std::size_t groups_ = 0;
    std::uint64_t refused_ = 0;
};

} // namespace plumb::analysis
