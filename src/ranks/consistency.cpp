// SPDX-License-Identifier: Apache-2.0
#include "ranks/consistency.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ranks/fitting_lines.hpp"

namespace plumb::ranks {
namespace {

constexpr int few_rounds = 60;  // of a fit, before clocks that contradict each other are looked for
constexpr int most_circles = 8; // looked for one by one; what contradicts after that is left out together
constexpr std::size_t most_starts = 4;
constexpr std::size_t most_suspects = 12; // the search for a smallest set asks for each of them whether it is needed

/// The joints of a few clocks, which are numbered anew.
SeenJoints only(const SeenJoints& joints, const std::vector<std::uint32_t>& domains, std::size_t of) {
    std::vector<std::uint32_t> place(of, ~0U);
    for (std::uint32_t i = 0; i < domains.size(); ++i) {
        place[domains[i]] = i;
    }
    SeenJoints few;
    for_each_joint(joints, [&](std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) {
            if (place[joints.seen[i].domain] != ~0U) {
                few.seen.push_back(joints.seen[i]);
                few.seen.back().domain = place[joints.seen[i].domain];
            }
        }
        few.close();
    });
    return few;
}

/// By how much the clocks of a set miss each other, as seen from any one of them; nothing where no band shows that they do.
double miss_of(const SeenJoints& joints, const ClockSet& set) {
    for (std::uint32_t root = 0; root < set.size(); ++root) {
        if (!set[root]) {
            continue;
        }
        if (const SolvedBands solved = solve_bands(joints, root, set); !solved.contradicting.empty()) {
            return std::max(solved.miss_ns, 1.0);
        }
    }
    return 0;
}

/// Of suspects a set that contradicts itself, and would not without any one of them. Empty: nothing shows that they do.
Contradiction smallest_of(const SeenJoints& joints, const std::vector<std::uint32_t>& suspects, std::size_t domains) {
    const SeenJoints few = only(joints, suspects, domains);
    ClockSet set(suspects.size(), true);
    Contradiction made;
    made.miss_ns = miss_of(few, set);
    if (made.miss_ns == 0) {
        return made;
    }
    for (std::size_t i = set.size(); i-- > 0;) { // the least suspect first
        set[i] = false;
        if (const double miss = miss_of(few, set); miss != 0) {
            made.miss_ns = miss;
        } else {
            set[i] = true;
        }
    }
    for (std::size_t i = 0; i < set.size(); ++i) {
        if (set[i]) {
            made.domains.push_back(suspects[i]);
        }
    }
    std::sort(made.domains.begin(), made.domains.end());
    return made;
}

/// The clocks of a misfit, and those that do not fit them or each other, the most often first.
std::vector<std::uint32_t> suspects_around(const Misfit& first, const std::vector<Misfit>& misfits) {
    std::vector<std::uint32_t> suspects = {first.a, first.b};
    const auto is_one = [&suspects](std::uint32_t d) {
        return std::find(suspects.begin(), suspects.end(), d) != suspects.end();
    };
    while (suspects.size() < most_suspects) {
        const auto next =
            std::find_if(misfits.begin(), misfits.end(), [&](const Misfit& m) { return is_one(m.a) != is_one(m.b); });
        if (next == misfits.end()) {
            break;
        }
        suspects.push_back(is_one(next->a) ? next->b : next->a);
    }
    return suspects;
}

Contradiction smallest(const SeenJoints& joints, const std::vector<Misfit>& misfits, std::size_t domains) {
    for (std::size_t i = 0; i < std::min(misfits.size(), most_starts); ++i) {
        Contradiction found = smallest_of(joints, suspects_around(misfits[i], misfits), domains);
        if (!found.domains.empty()) {
            return found;
        }
    }
    return {};
}

/// Through the middle of a band, or along its only side.
FittingLine line_of(const ClockBand& band, std::int64_t first, std::int64_t last) {
    const auto inside = [&band](std::int64_t at) {
        const ClockSpan span = band.at(at);
        return std::isinf(span.least) ? span.most : std::isinf(span.most) ? span.least : span.middle();
    };
    FittingLine line;
    line.at = first;
    const double begin = inside(first);
    line.offset = std::llround(begin);
    line.drift = last > first ? (inside(last) - begin) / static_cast<double>(last - first) : 0;
    return line;
}

class ConsistencySearch {
  public:
    ConsistencySearch(const SeenJoints& joints, std::uint32_t domains)
        : joints_(joints), among_(domains, true), first_(domains, std::numeric_limits<std::int64_t>::max()),
          last_(domains, std::numeric_limits<std::int64_t>::min()) {
        for (const SeenJoint& seen : joints.seen) {
            const std::int64_t at = seen.begins ? seen.last_begin : seen.first_end;
            first_[seen.domain] = std::min(first_[seen.domain], at);
            last_[seen.domain] = std::max(last_[seen.domain], at);
        }
    }

    ConsistentClocks run() {
        SolvedBands solved;
        for (bool again = true; again;) {
            solved = solve_bands(joints_, 0, among_);
            again = !solved.contradicting.empty();
            if (solved.direct) {
                for (const std::uint32_t d : solved.contradicting) {
                    take_out({{d}, solved.bands[d].contradiction(), Contradiction::Cause::itself});
                }
            } else if (circles_ < most_circles) {
                again = find_circle(solved);
            } else if (again) {
                take_out({solved.contradicting, solved.miss_ns, Contradiction::Cause::unclear});
            }
        }
        out_.proven = fits_;
        for (std::uint32_t d = 0; d < among_.size(); ++d) {
            out_.bands.push_back(among_[d] ? std::move(solved.bands[d]) : ClockBand::contradicting(0));
        }
        return std::move(out_);
    }

  private:
    void take_out(Contradiction found) {
        for (const std::uint32_t d : found.domains) {
            among_[d] = false;
        }
        out_.contradictions.push_back(std::move(found));
    }

    /// Takes out clocks that contradict each other; false: there is no such thing.
    bool find_circle(const SolvedBands& solved) {
        ClockSet known(among_.size());
        std::vector<FittingLine> lines(among_.size());
        const int sides = solved.contradicting.empty() ? 2 : 1; // what is empty now may have had one side before
        for (std::size_t d = 0; d < known.size(); ++d) {
            known[d] = among_[d] && first_[d] <= last_[d] && solved.bands[d].sides() >= sides;
            if (known[d]) {
                lines[d] = line_of(solved.bands[d], first_[d], last_[d]);
            }
        }
        lines[0].fixed = true;
        Contradiction circle;
        FittingLines fit = fit_lines(joints_, lines, known, few_rounds);
        if (!fit.found) {
            circle = smallest(joints_, fit.misfits, known.size());
        }
        if (!fit.found && circle.domains.empty()) {
            fit = fit_lines(joints_, lines, known);
            circle = fit.found ? circle : smallest(joints_, fit.misfits, known.size());
        }
        fits_ = fit.found;
        if (!circle.domains.empty()) {
            blame(circle, lines, known);
        } else if (!solved.contradicting.empty()) {
            circle = {solved.contradicting, solved.miss_ns, Contradiction::Cause::unclear};
        } else {
            return false;
        }
        ++circles_;
        take_out(std::move(circle));
        return true;
    }

    /// Leaves of a circle those without which nothing is wrong with the others in it, if there are any. The first clock is never one.
    void blame(Contradiction& circle, const std::vector<FittingLine>& lines, ClockSet known) const {
        const std::vector<std::uint32_t> all = std::move(circle.domains);
        circle.domains.clear();
        std::uint32_t alone = 0; // the last one without which all others fit
        for (const std::uint32_t d : all) {
            if (d == 0 || !known[d]) {
                continue;
            }
            known[d] = false;
            const FittingLines fit = fit_lines(joints_, lines, known, few_rounds);
            known[d] = true;
            alone = fit.found ? d : alone;
            if (fit.found || std::none_of(all.begin(), all.end(), [&fit](std::uint32_t other) {
                    return std::any_of(fit.misfits.begin(), fit.misfits.end(),
                                       [other](const Misfit& m) { return m.a == other || m.b == other; });
                })) {
                circle.domains.push_back(d);
            }
        }
        if (circle.domains.empty()) {
            std::copy_if(all.begin(), all.end(), std::back_inserter(circle.domains),
                         [](std::uint32_t d) { return d != 0; });
        } else if (circle.domains.size() == 1 && circle.domains[0] == alone) {
            circle.cause = Contradiction::Cause::alone;
        }
    }

    const SeenJoints& joints_;
    ClockSet among_;
    std::vector<std::int64_t> first_, last_; // of each clock
    int circles_ = 0;
    bool fits_ = false; // lines were found for all clocks that were left then
    ConsistentClocks out_;
};

} // namespace

ConsistentClocks find_consistent(const SeenJoints& joints, std::uint32_t domains) {
    return ConsistencySearch(joints, domains).run();
}

} // namespace plumb::ranks
