// SPDX-License-Identifier: Apache-2.0
#include "ranks/late.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

namespace plumb::ranks {
namespace {

constexpr double chance = 1e-4; // that in a job of ranks that are alike one is called late
constexpr double margins_ns[] = {0, 1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6};
constexpr std::size_t margins = std::size(margins_ns);
constexpr std::size_t most_late = 8; // each is another pass over all collectives

/// No more than the chance that a rank which is last with probability p is so k times of n, by Chernoff's bound; natural logarithm.
double log_chance(double k, double n, double p) {
    const double q = k / n;
    if (q <= p) {
        return 0;
    }
    return -n * (q * std::log(q / p) + (q < 1 ? (1 - q) * std::log((1 - q) / (1 - p)) : 0));
}

/// Of one rank and margin.
struct LateSums {
    std::uint64_t joints = 0, last = 0;
    double expected = 0, alone = 0;
};

class Search {
  public:
    explicit Search(std::size_t ranks) : named_(ranks), sums_(ranks * margins) {}

    void begin() { std::fill(sums_.begin(), sums_.end(), LateSums()); }

    void take(const JointWait& wait) {
        double alone_at_most = 0; // of any rank
        double taken_up_to = -1;  // beyond that margin no named rank was last
        std::size_t others = 0;
        for (const PartWait& part : wait.parts) {
            alone_at_most = std::max(alone_at_most, part.alone.most);
            if (named_[part.part.rank]) {
                taken_up_to = part.last ? part.alone.least : taken_up_to;
            } else {
                ++others;
            }
        }
        for (const PartWait& part : wait.parts) {
            for (std::size_t m = 0; m < margins && alone_at_most >= margins_ns[m]; ++m) {
                if (named_[part.part.rank] || margins_ns[m] <= taken_up_to) {
                    continue;
                }
                LateSums& sums = sums_[part.part.rank * margins + m];
                const bool last = part.last && part.alone.least >= margins_ns[m];
                ++sums.joints;
                sums.expected += 1.0 / static_cast<double>(others);
                sums.last += last ? 1 : 0;
                sums.alone += last ? part.alone.least : 0;
            }
        }
    }

    /// The one that chance explains least, if it does not explain it.
    std::optional<Late> surest(const std::function<bool(std::size_t)>& matters) {
        double least = std::log(chance / static_cast<double>(sums_.size()));
        std::optional<Late> found;
        for (std::size_t at = 0; at < sums_.size(); ++at) {
            const LateSums& sums = sums_[at];
            const auto n = static_cast<double>(sums.joints), k = static_cast<double>(sums.last);
            const double log = sums.last == 0 ? 0 : log_chance(k, n, sums.expected / n);
            if (log < least && matters(at / margins)) {
                least = log;
                found = {at / margins, margins_ns[at % margins], sums.last, sums.joints, sums.expected, sums.alone / k};
            }
        }
        if (found) {
            named_[found->rank] = true;
        }
        return found;
    }

  private:
    std::vector<bool> named_;    // by rank
    std::vector<LateSums> sums_; // by rank and margin
};

} // namespace

std::vector<Late> find_late(const Job& job, const Joints& joints, const RankAlignment& alignment,
                            const std::function<bool(std::size_t)>& matters) {
    std::vector<Late> late;
    Search search(job.ranks.size());
    while (late.size() < most_late) {
        search.begin();
        for_each_wait(job, joints, alignment, [&](const JointWait& wait) {
            const JointKind kind = joints.streams[wait.joint->stream].kind;
            if (kind == JointKind::blocking || kind == JointKind::exchange) {
                search.take(wait);
            }
        });
        const std::optional<Late> found = search.surest(matters);
        if (!found) {
            break;
        }
        late.push_back(*found);
    }
    return late;
}

} // namespace plumb::ranks
