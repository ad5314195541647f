// SPDX-License-Identifier: Apache-2.0
// One recording -> what a comparison needs of it: per phase the counted steps, and per step the time of each brick,
// category and layer (self time, so that bricks add up), then one number per row and run. Steps and means are of all
// counted steps. Memory is bounded whatever the recording claims: percentiles of bricks, categories and layers are of
// at most `compare_max_steps` steps of a phase, chosen as good as at random. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/comparison.hpp"
#include "analysis/report_builder.hpp"
#include "plumb/result.hpp"
#include "read/read.hpp"

namespace plumb::analysis {

/// What a row of a comparison is about, the same in every run.
struct CompareId {
    CompareSubject subject = CompareSubject::step;
    Phase phase = Phase::none;
    bool device = false;
    std::string name;        // of a brick or category; empty: step, layer
    std::uint32_t layer = 0; // of a layer
    auto operator<=>(const CompareId&) const = default;
};

/// One row of one run, nanoseconds per step. NaN: not enough steps for it, or the choice of steps would decide it.
struct RunRow {
    CompareId id;
    Category category = Category::other; // of a brick
    double p50 = 0, p90 = 0, p99 = 0, mean = 0;
    double central = 0;      // mean over the steps whose period lies in the middle half: adds up over bricks
    bool per_replay = false; // holds sampled replays, or steps in which a queue was timed: only `mean` and `central`
};

struct RunPhase {
    std::uint64_t steps = 0; // counted ones
    double tokens_per_step = 0, sequences_per_step = 0;
    double kv_length = 0; // median; 0: not given
};

/// Everything a comparison takes from one recording.
struct RunFigures {
    std::int64_t start_realtime_ns = 0;
    std::string rank;                                             // empty: not known
    std::vector<std::pair<std::string, std::string>> key;         // what must be equal
    std::vector<std::pair<std::string, std::string>> description; // shown
    std::vector<std::pair<std::string, std::string>> identity;    // shown
    std::array<RunPhase, 4> phases;                               // by Phase
    std::vector<RunRow> rows;                                     // sorted by id
    std::uint64_t lost = 0; // records that are in no row though they were to be: bricks may look faster than they are
    std::vector<std::string> notes;
};

inline constexpr std::size_t compare_max_steps = 4096; // of one phase, for percentiles of what is in steps
inline constexpr std::size_t compare_max_rows = 2048;  // of one phase

class CompareReader final : public read::Observer {
  public:
    /// REQUIRES: facts and report outlive the reading; where the report is asked for anything, it reads along.
    CompareReader(const recording::RunFacts& facts, ReportReader& report);
    ~CompareReader() override;

    /// After the reading, once.
    [[nodiscard]] RunFigures take();

    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) override;
    void consume(const resolve::ResolvedBatch& batch) override;
    void finish(const resolve::Resolution& resolution) override;

  private:
    class Sums;

    const recording::RunFacts& facts_;
    ReportReader& report_;
    std::optional<std::size_t> number_; // of a report; absent: it has nothing to add
    std::unique_ptr<Sums> sums_;
    std::uint64_t lost_ = 0;
};

[[nodiscard]] Result<RunFigures> gather_run(const recording::RecordedRun& run);

} // namespace plumb::analysis
