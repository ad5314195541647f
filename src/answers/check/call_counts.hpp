// SPDX-License-Identifier: Apache-2.0
// How often each complete step called a brick, step by step: a mean over steps would hide two calls here and none there.
// Calls inside captured graphs are replays times the sites of the graph. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/result.hpp"
#include "read/read.hpp"
#include "resolve/name_table.hpp"

namespace plumb {

/// Every complete step of the phase calls the brick exactly so often; with per_token, so often for each of its tokens.
struct ExpectedCalls {
    std::string brick;
    std::uint64_t count = 0;
    bool per_token = false;
};

inline constexpr std::size_t max_expected_calls = 64;

struct CallCount {
    std::uint64_t steps = 0;     // complete steps of the phase, warm-up included: a count needs no warm clock
    std::uint64_t judged = 0;    // of those, steps all of whose calls of this brick are in the recording
    std::uint64_t differing = 0; // of those
    bool too_many = false;       // some step has more calls than expected: no loss explains that
    std::uint64_t least = 0, most = 0, total = 0;
    std::uint64_t first_step = 0, first_found = 0, first_expected = 0; // the first that differs
    std::string unknown;                                               // why nothing could be judged; else empty
};

class CallReader final : public read::Observer {
  public:
    /// REQUIRES: the facts outlive it. Of `expected`, at most max_expected_calls are counted.
    CallReader(const recording::RunFacts& facts, Phase phase, const std::vector<ExpectedCalls>& expected);

    /// After the reading: one for each of those expected.
    [[nodiscard]] std::vector<CallCount> take() { return std::move(counts_); }

    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) override;
    void consume(const resolve::ResolvedBatch& batch) override;
    void finish(const resolve::Resolution& resolution) override;

  private:
    struct BrickCalls {
        std::vector<std::uint32_t> calls; // by index of the step
        bool sometimes_timed = false;     // on a queue that is timed in some steps only
    };

    void add(std::uint16_t name, std::uint64_t step, std::uint32_t calls, bool sometimes_timed);
    void launched(const resolve::Submission& launch);
    [[nodiscard]] std::uint64_t asked(std::uint16_t name);
    [[nodiscard]] CallCount judge(std::size_t index) const;

    const Phase phase_;
    const std::vector<ExpectedCalls> expected_;
    resolve::NameTable names_;
    std::unordered_map<std::uint64_t, const recording::GraphInfo*> graphs_;
    std::unordered_map<std::uint16_t, std::uint64_t> asked_; // name -> a bit for each expectation that names it
    const resolve::StepTable* steps_ = nullptr;              // during the reading
    std::vector<BrickCalls> bricks_;
    std::vector<bool> unknown_content_; // by index of the step: a graph ran whose content is not known
    std::uint64_t last_id_ = resolve::no_step;
    std::size_t last_index_ = resolve::step_not_found;
    std::vector<CallCount> counts_;
};

[[nodiscard]] Result<std::vector<CallCount>> count_calls(const recording::RecordedRun& run, Phase phase,
                                                         const std::vector<ExpectedCalls>& expected);

} // namespace plumb
