// SPDX-License-Identifier: Apache-2.0
// Which runs of one session, of one phase, are profiled: a profiled run takes longer than a plain one, so that how often is settled by what
// it cost so far. Thread rule: one call at a time.
#pragma once

#include <cstdint>

namespace plumb::attach::onnxruntime {

class Pace {
  public:
    static constexpr double most_cost = 0.05; // of the time of all runs
    static constexpr std::uint64_t first_few =
        3; // are profiled whatever they cost, so that a short program shows its nodes

    /// `warm_up`: so many runs at first are not. `every`: one run out of so many at most; 1: each is, as was asked for.
    Pace(std::uint64_t warm_up, std::uint64_t every) : warm_up_(warm_up), every_(every) {}

    /// Whether the run that begins now is profiled; if so, profiled() or given_up() follows.
    [[nodiscard]] bool next();
    void plain(std::int64_t nanoseconds);
    /// With all that was done for it.
    void profiled(std::int64_t nanoseconds);
    void given_up() { busy_ = false; }

  private:
    [[nodiscard]] bool is_cheap() const;

    std::uint64_t warm_up_, every_;
    std::uint64_t begun_ = 0, since_ = 0; // runs, and plain ones since the last profiled one
    std::uint64_t plain_ = 0, profiled_ = 0;
    double plain_ns_ = 0, all_ns_ = 0, cost_ns_ = 0;
    bool busy_ = false;
};

} // namespace plumb::attach::onnxruntime
