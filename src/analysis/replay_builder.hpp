// SPDX-License-Identifier: Apache-2.0
// A recorded run -> what became of its captured graphs. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>

#include "analysis/graph_table.hpp"
#include "plumb/result.hpp"
#include "plumb/results.hpp"
#include "read/read.hpp"

namespace plumb::analysis {

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

} // namespace plumb::analysis
