// SPDX-License-Identifier: Apache-2.0
// Everything that one step of a recording holds, and which step that is. Owned by one report; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/path_presence.hpp"
#include "plumb/result.hpp"
#include "read/read.hpp"
#include "resolve/resolve.hpp"

namespace plumb::analysis {

struct PathStep {
    /// Scopes of one step that are kept at most, 2 GiB of them; nodes and dependencies as well.
    static constexpr std::size_t most_samples = std::size_t{1} << 24;

    resolve::ResolvedStep step;
    std::uint64_t candidates = 0; // steps its length is the median of; 0: it was asked for
    bool only_timed = false;      // of those, only steps whose device scopes were timed
    std::vector<resolve::Sample> samples;
    std::vector<resolve::Submission> submissions;
    std::vector<resolve::Launch> launches; // Sample::launch is an index into them
    std::vector<resolve::RecordedNode> nodes;
    std::vector<resolve::NodeDependency> dependencies;
    ThreadsAway away; // only where something may have run beside a thread
};

/// Finds the step and everything in it, steps within it too, while a run is read.
class StepCollector : public read::Observer {
  public:
    /// `step`: absent for the one of median length, or of the same the n-th `slowest`.
    StepCollector(const recording::RunFacts& facts, const std::optional<std::uint64_t>& step, std::uint32_t slowest = 0,
                  const std::optional<Phase>& phase = {});

    [[nodiscard]] Status status() const;
    /// REQUIRES: the status is ok.
    [[nodiscard]] const PathStep& step() const noexcept { return step_; }

    [[nodiscard]] bool looks_at(const recording::TrackInfo& track) const override;
    void look(const resolve::ResolvedBatch& batch) override;
    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) override;
    void consume(const resolve::ResolvedBatch& batch) override;
    void finish(const resolve::Resolution& resolution) override;

  private:
    void find_steps_within(const resolve::StepTable& steps);
    [[nodiscard]] bool is_kept(std::uint64_t step) const;
    template <class From, class To>
    void keep(const From& from, To& to);
    void keep_launches(const resolve::ResolvedBatch& batch, std::size_t from);

    const std::optional<std::uint64_t> asked_;
    const std::uint32_t slowest_;
    const std::optional<Phase> phase_;
    const bool devices_;
    PathStep step_;
    std::vector<std::uint64_t> within_; // steps that its thread began and ended meanwhile; sorted
    resolve::StepIds device_timed_;
    std::optional<PathPresence> presence_; // a thread waits for nothing where nothing runs beside it
    std::string missing_ = "this recording holds no complete step";
    bool found_ = false;
    bool too_many_ = false;
};

} // namespace plumb::analysis
