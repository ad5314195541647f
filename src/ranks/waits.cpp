// SPDX-License-Identifier: Apache-2.0
#include "ranks/waits.hpp"

#include <algorithm>
#include <limits>

namespace plumb::ranks {
namespace {

/// When a rank began, on the clock of its domain and on the job's.
struct Arrival {
    std::uint32_t domain = 0;
    double here = 0;
    double error = 0; // of `here`
    ClockSpan job;
};

constexpr std::size_t none = ~std::size_t{0};

/// Of the arrivals of a domain the two latest, by place.
struct Latest {
    std::uint32_t domain = 0;
    std::size_t first = 0;
    std::size_t second = none;
};

/// The largest value of all domains, and the largest of another domain than that.
struct LargestTwo {
    double value[2] = {-infinity, -infinity};
    std::uint32_t domain = ~0U;
    void add(double candidate, std::uint32_t of) { // once for each domain
        if (candidate > value[0]) {
            value[1] = value[0];
            value[0] = candidate;
            domain = of;
        } else {
            value[1] = std::max(value[1], candidate);
        }
    }
    [[nodiscard]] double without(std::uint32_t of) const { return of == domain ? value[1] : value[0]; }
};

class Waits {
  public:
    Waits(const Job& job, const Joints& joints, const RankAlignment& alignment)
        : job_(job), joints_(joints), alignment_(alignment) {}

    bool look_at(const Joint& joint) {
        const JointKind kind = joints_.streams[joint.stream].kind;
        found_.joint = &joint;
        found_.parts.clear();
        arrivals_.clear();
        for (std::uint32_t p = 0; p < joint.parts; ++p) {
            const JointPart& part = joints_.parts[joint.first_part + p];
            const RankClock& clock = alignment_.clocks[part.rank];
            if (!clock.found() || joint.contradicts) {
                return false;
            }
            const RankEvent& event = event_of(part);
            arrivals_.push_back({clock.domain, static_cast<double>(clock.in_domain(event.begin)),
                                 static_cast<double>(event.error), clock.in_job(event.begin)});
            PartWait& made = found_.parts.emplace_back();
            made.part = part;
            made.arrival = clock.estimate(event.begin);
            made.end = clock.estimate(event.end);
        }
        find_latest();
        for (std::size_t p = 0; p < found_.parts.size(); ++p) {
            const bool sender = kind == JointKind::message && p == 0;
            judge(found_.parts[p], later_than(p), sender);
        }
        return true;
    }
    [[nodiscard]] const JointWait& found() const { return found_; }

  private:
    [[nodiscard]] const RankEvent& event_of(const JointPart& part) const {
        return job_.ranks[part.rank].events.events[part.event];
    }

    void find_latest() {
        for (const Latest& latest : latest_) {
            slots_[latest.domain] = none;
        }
        latest_.clear();
        slots_.resize(alignment_.domains, none);
        for (std::size_t p = 0; p < arrivals_.size(); ++p) {
            std::size_t& slot = slots_[arrivals_[p].domain];
            if (slot == none) {
                slot = latest_.size();
                latest_.push_back({arrivals_[p].domain, p});
                continue;
            }
            Latest& known = latest_[slot];
            if (arrivals_[p].here > arrivals_[known.first].here) {
                known.second = known.first;
                known.first = p;
            } else if (known.second == none || arrivals_[p].here > arrivals_[known.second].here) {
                known.second = p;
            }
        }
        least_ = most_ = LargestTwo();
        for (const Latest& latest : latest_) {
            const Arrival& of = arrivals_[latest.first];
            least_.add(of.job.least - of.error, of.domain);
            most_.add(of.job.most + of.error, of.domain);
        }
    }

    /// By how much the last of the others arrived later: negative where all were earlier.
    [[nodiscard]] ClockSpan later_than(std::size_t p) const {
        const Arrival& own = arrivals_[p];
        ClockSpan later{least_.without(own.domain) - own.job.most - own.error,
                        most_.without(own.domain) - own.job.least + own.error};
        const Latest& here = latest_[slots_[own.domain]];
        if (const std::size_t other = here.first == p ? here.second : here.first; other != none) {
            const double by = arrivals_[other].here - own.here;
            const double error = arrivals_[other].error + own.error;
            later = {std::max(later.least, by - error), std::max(later.most, by + error)};
        }
        return later;
    }

    /// `later`: by how much the last of the others arrived later than it.
    void judge(PartWait& of, const ClockSpan& later, bool sender) const {
        const RankEvent& event = event_of(of.part);
        const auto whole = static_cast<double>(event.end - event.begin);
        // It cannot have waited longer than it took: the last one began before it ended.
        of.wait = sender ? ClockSpan{0, 0}
                         : ClockSpan{std::clamp(later.least, 0.0, whole), std::clamp(later.most, 0.0, whole)};
        of.move = {whole - of.wait.most, whole - of.wait.least};
        of.last = later.most < 0;
        of.may_be_last = later.least <= 0;
        of.alone = {std::max(-later.most, 0.0), std::max(-later.least, 0.0)};
    }

    const Job& job_;
    const Joints& joints_;
    const RankAlignment& alignment_;
    std::vector<Arrival> arrivals_;
    std::vector<Latest> latest_;     // of each domain
    std::vector<std::size_t> slots_; // in latest_, by domain
    LargestTwo least_, most_;        // of their ends, on the job's clock
    JointWait found_;
};

} // namespace

void for_each_wait(const Job& job, const Joints& joints, const RankAlignment& alignment,
                   const std::function<void(const JointWait&)>& take) {
    Waits waits(job, joints, alignment);
    for (const Joint& joint : joints.joints) {
        if (waits.look_at(joint)) {
            take(waits.found());
        }
    }
}

} // namespace plumb::ranks
