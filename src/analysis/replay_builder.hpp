// SPDX-License-Identifier: Apache-2.0
// A recorded run -> what became of its captured graphs, which `plumb replays` shows and `plumb check` judges. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/graph_table.hpp"
#include "plumb/figure.hpp"
#include "plumb/result.hpp"
#include "read/read.hpp"

namespace plumb {

/// How often one kernel (or node type) occurs in two captures of one key.
struct NodeChange {
    std::string kernel;
    std::uint64_t before = 0, after = 0;
};

/// The life of one captured graph. Times are of the host and in all; bytes are estimates.
struct ReplayRow {
    using Counts = std::vector<std::pair<std::string, std::uint64_t>>;
    std::uint64_t key = 0;
    std::uint64_t captures = 0, instantiations = 0, updates = 0, uploads = 0, evictions = 0;
    std::uint64_t replays = 0;      // plain and instrumented
    std::uint64_t instrumented = 0; // of those
    std::uint64_t unread = 0;       // samples given up because the one before was unread
    Counts eager_steps;             // steps that ran without the graph, by reason
    std::uint64_t rows_used = 0, rows_padded = 0;
    std::uint64_t replays_of_rows = 0; // replays that these are of: fewer where the run was cut short
    Figure padding_wasted;             // 0..1
    Counts nodes;                      // by type, of the last capture
    Counts unattributed;               // in no brick, by kernel name
    std::uint64_t node_checks = 0;
    std::vector<NodeChange> node_changes; // last capture against the one before
    std::vector<std::string> baked_in;    // what verify_capture found
    std::uint64_t sites = 0, sites_timed = 0;
    Figure device_ns;     // of one replay: sum over its sites of the mean of their samples
    Figure raw_device_ns; // with the cost of the stamps left in
    Figure plain_span_ns; // median span of plain replays by outer events
    Figure capture_ns, instantiate_ns, upload_ns, launch_ns, bytes;
    std::uint64_t launches_timed = 0; // replays that launch_ns is of: fewer where the run was cut short
    std::string twin;                 // "event", "stamp"; empty: none
    std::string twin_reason;          // why there is none
    std::string sites_told_by;
    Figure twin_build_ns, twin_bytes, tick_ns, site_cost_ns, site_cost_error_ns, closure_raw, closure;
    std::uint64_t every = 0; // one replay out of so many is sampled; 0: none
};

enum class NodeCheck : std::uint8_t { not_compared, agree, differ };

struct ReplayReport {
    std::vector<ReplayRow> graphs; // by key
    NodeCheck node_check = NodeCheck::not_compared;
    bool baked_in = false;                          // some graph has a value baked in
    std::vector<std::uint64_t> never_replayed;      // keys
    Figure never_replayed_ns, never_replayed_bytes; // what those cost
    std::vector<std::string> notes;
};

namespace analysis {

class ReplayReader final : public read::Observer {
  public:
    /// REQUIRES: the facts outlive it.
    explicit ReplayReader(const recording::RunFacts& facts) : facts_(facts), graphs_(facts) {}

    /// After the reading.
    [[nodiscard]] ReplayReport take();

    void consume(const resolve::ResolvedBatch& batch) override;

  private:
    struct Launches {
        std::uint64_t all = 0;
        std::uint64_t instrumented = 0;
    };

    void launched(resolve::Submission launch);
    [[nodiscard]] ReplayRow row_of(std::uint32_t graph, const recording::GraphInfo& info) const;
    void add_device_time(ReplayRow& row, std::uint32_t graph) const;
    static void add_costs(ReplayRow& row, const recording::GraphInfo& info);
    static void check_nodes(ReplayReport& report);
    static void add_never_replayed(ReplayReport& report);
    void add_notes(ReplayReport& report) const;

    const recording::RunFacts& facts_;
    GraphTable graphs_;
    std::map<std::uint64_t, Launches> launches_;
};

[[nodiscard]] Result<ReplayReport> build_replays(const recording::RecordedRun& run);

} // namespace analysis
} // namespace plumb
