// SPDX-License-Identifier: Apache-2.0
// How often a replay is sampled, so that stamps cost at most 1 % of a step. Replays are counted, so that every rank
// of a job samples the same ones; powers of two, so that ranks that differ still agree on the rarer ones. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plumb::cudagraph {

class SamplingRate {
  public:
    static constexpr std::uint64_t start = 64;     // while a step's time or a stamp's cost is not known
    static constexpr std::uint64_t most_often = 4; // sampled replays have plain neighbours
    static constexpr std::uint64_t rarest = std::uint64_t{1} << 20;
    static constexpr double share = 0.01;

    /// `fixed` replaces what would be computed; 0: computed.
    explicit SamplingRate(std::uint64_t fixed) : fixed_(fixed), every_(fixed != 0 ? fixed : start) {}

    /// NaN for what is not known.
    void learn(std::size_t stamps, double site_cost_ns, double step_ns);
    [[nodiscard]] std::uint64_t every() const { return every_; }
    /// Stamps that one sample may hold at a fixed rate; no bound where it is computed or nothing is known.
    [[nodiscard]] static std::size_t most_stamps(std::uint64_t fixed, double site_cost_ns, double step_ns);

  private:
    std::uint64_t fixed_;
    std::uint64_t every_;
};

} // namespace plumb::cudagraph
