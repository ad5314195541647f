// SPDX-License-Identifier: Apache-2.0
#include "ranks/planted_ranks_testing.hpp"

#include <algorithm>
#include <cmath>
#include <random>

namespace plumb::ranks::testing {
namespace {

/// The same everywhere: distributions of the standard library differ between libraries.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : random_(seed) {}
    double uniform(double most) { return (static_cast<double>(random_() >> 11) * 0x1p-53 * 2 - 1) * most; }
    double exponential(double mean) { return -mean * std::log(1 - static_cast<double>(random_() >> 11) * 0x1p-53); }
    bool chance(double share) { return static_cast<double>(random_() >> 11) * 0x1p-53 < share; }

  private:
    std::mt19937_64 random_;
};

} // namespace

double Planted::correction(std::uint32_t rank, std::int64_t moment) const {
    const double truth = (static_cast<double>(moment) - offset[rank]) / (1 + drift[rank]);
    return truth * (1 + drift[0]) + offset[0] - static_cast<double>(moment);
}

Planted plant(const RankPlan& plan) {
    Dice dice(plan.seed);
    Dice fate(~plan.seed); // who is late: the rest is the same whoever is
    Planted made;
    made.job.world = plan.ranks;
    made.begin.resize(plan.ranks);
    made.end.resize(plan.ranks);
    for (std::uint32_t r = 0; r < plan.ranks; ++r) {
        made.offset.push_back(1e9 + std::fabs(dice.uniform(plan.most_offset_ns)));
        made.drift.push_back(dice.uniform(plan.most_drift));
        Rank& rank = made.job.ranks.emplace_back();
        rank.number = r;
        rank.path = "r" + std::to_string(r) + ".plumb";
        rank.metadata.rank = std::to_string(r);
        rank.metadata.world = plan.ranks;
        rank.events.names = {"all_reduce"};
    }
    std::vector<double> now(plan.ranks, 1e6);
    for (std::uint32_t k = 0; k < plan.collectives; ++k) {
        double last = 0;
        const std::optional<std::uint32_t> late = fate.chance(plan.late_share)   ? plan.late
                                                  : fate.chance(plan.late_share) ? plan.late_else
                                                                                 : std::nullopt;
        for (std::uint32_t r = 0; r < plan.ranks; ++r) {
            now[r] += plan.compute_ns + dice.exponential(plan.jitter_ns) + (late == r ? plan.late_ns : 0);
            made.begin[r].push_back(now[r]);
            last = std::max(last, now[r]);
        }
        made.last_begin.push_back(last);
        const double move = plan.least_move_ns + dice.exponential(plan.move_jitter_ns);
        for (std::uint32_t r = 0; r < plan.ranks; ++r) {
            now[r] = last + move + dice.exponential(plan.end_jitter_ns);
            made.end[r].push_back(now[r]);
            const auto shown = [&](double truth) {
                return static_cast<std::int64_t>(std::llround(truth * (1 + made.drift[r]) + made.offset[r]));
            };
            RankEvent event;
            event.begin = shown(made.begin[r].back());
            event.end = shown(now[r]);
            event.error = 1; // whole nanoseconds
            event.step = k / 100;
            RankEvents& events = made.job.ranks[r].events;
            events.first_ns = k == 0 ? event.begin : events.first_ns;
            events.last_ns = event.end;
            events.events.push_back(event);
        }
    }
    return made;
}

} // namespace plumb::ranks::testing
