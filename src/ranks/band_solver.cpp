// SPDX-License-Identifier: Apache-2.0
#include "ranks/band_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace plumb::ranks {
namespace {

constexpr int most_rounds = 64;
constexpr double least_progress = 0.01; // of all widths together, in a round

/// The best two values of different domains.
struct BestTwo {
    double value[2] = {infinity, infinity};
    std::uint32_t domain = ~0U;
    void add(double candidate, std::uint32_t of) {
        if (candidate < value[0]) {
            value[1] = of == domain ? value[1] : value[0];
            value[0] = candidate;
            domain = of;
        } else if (of != domain) {
            value[1] = std::min(value[1], candidate);
        }
    }
    [[nodiscard]] double without(std::uint32_t of) const { return of == domain ? value[1] : value[0]; }
};

class BandSolver {
  public:
    BandSolver(const SeenJoints& joints, std::uint32_t root, const ClockSet& among)
        : joints_(joints), root_(root), among_(among), middles_(among.size()) {
        find_middles();
        out_.bands.resize(among.size());
        out_.bands[root] = ClockBand::known(middles_[root], 0, 0, 0);
    }

    SolvedBands run() {
        double before = infinity;
        for (int i = 0; i < most_rounds; ++i) {
            const int known = sides();
            std::vector<ClockBand> bands = round();
            out_.direct = i == 0 && !out_.contradicting.empty();
            if (out_.contradicting.empty() || out_.direct) {
                out_.bands = std::move(bands);
            }
            if (!out_.contradicting.empty()) {
                break;
            }
            const double now = width();
            if (sides() == known && now > before * (1 - least_progress)) {
                break;
            }
            before = sides() == known ? now : infinity;
        }
        return std::move(out_);
    }

  private:
    /// Where on its own clock the width of each band is looked at.
    void find_middles() {
        std::vector<std::int64_t> first(among_.size(), std::numeric_limits<std::int64_t>::max());
        std::vector<std::int64_t> last(among_.size(), std::numeric_limits<std::int64_t>::min());
        for (const SeenJoint& seen : joints_.seen) {
            const std::int64_t at = seen.begins ? seen.last_begin : seen.first_end;
            first[seen.domain] = std::min(first[seen.domain], at);
            last[seen.domain] = std::max(last[seen.domain], at);
        }
        for (std::size_t d = 0; d < middles_.size(); ++d) {
            middles_[d] = first[d] <= last[d] ? first[d] + (last[d] - first[d]) / 2 : 0;
        }
    }

    std::vector<ClockBand> round() {
        std::vector<std::vector<Bound>> upper(among_.size()), lower(among_.size());
        for_each_joint(joints_, [&](std::size_t begin, std::size_t end) { add_bounds(begin, end, upper, lower); });
        std::vector<ClockBand> bands(among_.size());
        bands[root_] = out_.bands[root_];
        for (std::uint32_t d = 0; d < among_.size(); ++d) {
            if (among_[d] && d != root_) {
                bands[d] = ClockBand::of(std::move(upper[d]), std::move(lower[d]));
                if (bands[d].state() == ClockBand::State::empty) {
                    out_.contradicting.push_back(d);
                    out_.miss_ns = std::max(out_.miss_ns, bands[d].contradiction());
                }
            }
        }
        return bands;
    }

    void add_bounds(std::size_t begin, std::size_t end, std::vector<std::vector<Bound>>& upper,
                    std::vector<std::vector<Bound>>& lower) const {
        BestTwo ends;   // the earliest that the joint may have ended on a rank of another domain
        BestTwo begins; // the latest that it has begun there, its sign turned
        for (std::size_t i = begin; i < end; ++i) {
            const SeenJoint& seen = joints_.seen[i];
            if (seen.ends && among_[seen.domain]) {
                ends.add(static_cast<double>(seen.first_end) + out_.bands[seen.domain].at(seen.first_end).most,
                         seen.domain);
            }
            if (seen.begins && among_[seen.domain]) {
                begins.add(-static_cast<double>(seen.last_begin) - out_.bands[seen.domain].at(seen.last_begin).least,
                           seen.domain);
            }
        }
        for (std::size_t i = begin; i < end; ++i) {
            const SeenJoint& seen = joints_.seen[i];
            if (!among_[seen.domain]) {
                continue;
            }
            const double limit = ends.without(seen.domain);
            if (seen.begins && limit != infinity) {
                upper[seen.domain].push_back(
                    {seen.last_begin, static_cast<std::int64_t>(std::ceil(limit)) - seen.last_begin});
            }
            const double floor = begins.without(seen.domain);
            if (seen.ends && floor != infinity) {
                lower[seen.domain].push_back(
                    {seen.first_end, static_cast<std::int64_t>(std::floor(-floor)) - seen.first_end});
            }
        }
    }

    [[nodiscard]] int sides() const {
        int sum = 0;
        for (const ClockBand& band : out_.bands) {
            sum += band.sides();
        }
        return sum;
    }
    [[nodiscard]] double width() const {
        double sum = 0;
        for (std::size_t d = 0; d < middles_.size(); ++d) {
            sum += out_.bands[d].found() ? out_.bands[d].at(middles_[d]).width() : 0;
        }
        return sum;
    }

    const SeenJoints& joints_;
    const std::uint32_t root_;
    const ClockSet& among_;
    std::vector<std::int64_t> middles_;
    SolvedBands out_;
};

} // namespace

SolvedBands solve_bands(const SeenJoints& joints, std::uint32_t root, const ClockSet& among) {
    return BandSolver(joints, root, among).run();
}

} // namespace plumb::ranks
