// SPDX-License-Identifier: Apache-2.0
#include "ranks/alignment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace plumb::ranks {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int most_rounds = 64;
constexpr double least_progress = 0.01; // of all widths together, in a round

std::int64_t plus(std::int64_t moment, double correction) {
    return moment + static_cast<std::int64_t>(std::llround(correction));
}

const char* host_clock_of(const Rank& rank) {
    for (const recording::ClockInfo& clock : rank.metadata.clocks) {
        if (clock.id == 0) {
            return clock.name.c_str();
        }
    }
    return "";
}

bool is_counter(const Rank& rank) {
    const std::string clock = host_clock_of(rank);
    return (clock == "tsc" || clock == "cntvct") && rank.events.line && !rank.clock_pairs.empty();
}

/// What a domain has of one joint, on its clock.
struct SeenJoint {
    std::uint32_t domain = 0;
    std::int64_t last_begin = std::numeric_limits<std::int64_t>::min(); // no later than it really was
    std::int64_t first_end = std::numeric_limits<std::int64_t>::max();  // no earlier than it really was
    bool begins = false, ends = false;                                  // of a message each domain has one of them
};

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

class ClockAligner {
  public:
    ClockAligner(const Job& job, Joints& joints, const std::vector<GivenOffset>& given)
        : job_(job), joints_(joints), given_(given) {}

    RankAlignment run() {
        find_domains();
        see_joints();
        bands_.assign(out_.domains, ClockBand());
        bands_[0] = ClockBand::known(job_.ranks[0].events.first_ns, 0, 0, 0);
        bool exchanges = false;
        solve(exchanges);
        if (std::any_of(bands_.begin(), bands_.end(),
                        [](const ClockBand& b) { return b.state() == ClockBand::State::open; }) &&
            has_exchanges()) {
            exchanges = true;
            solve(exchanges);
            out_.notes.emplace_back("The clocks of some ranks are known from moe_dispatch and moe_combine alone, as if "
                                    "each of these ended on no rank before the last rank began it.");
        }
        finish();
        return std::move(out_);
    }

  private:
    // --- Domains ---

    /// Makes rank r one of the domain of rank `other`.
    void join(std::uint32_t r, std::uint32_t other, ClockSource how) {
        RankClock& clock = out_.clocks[r];
        const RankClock& first = out_.clocks[other];
        clock.source = how;
        clock.domain = first.domain;
        if (how == ClockSource::same_counter) {
            const std::uint64_t ticks = job_.ranks[r].clock_pairs.front().ticks;
            const auto& own = *job_.ranks[r].events.line;
            const auto& theirs = *job_.ranks[other].events.line;
            clock.at = own.to_ns(ticks);
            clock.offset = static_cast<double>(theirs.to_ns(ticks) - clock.at);
            clock.drift = theirs.ns_per_tick() / own.ns_per_tick() - 1;
        }
    }

    void find_domains() {
        std::map<std::string, std::uint32_t> by_clock;   // boot and time namespace -> its first rank
        std::map<std::string, std::uint32_t> by_counter; // boot
        out_.clocks.resize(job_.ranks.size());
        for (std::uint32_t r = 0; r < job_.ranks.size(); ++r) {
            const recording::Metadata& who = job_.ranks[r].metadata;
            const std::string clock =
                who.boot_id.empty() || who.time_namespace == 0 || host_clock_of(job_.ranks[r]) == std::string("caller")
                    ? ""
                    : who.boot_id + " " + std::to_string(who.time_namespace);
            const std::string counter = who.boot_id.empty() || !is_counter(job_.ranks[r]) ? "" : who.boot_id;
            const auto counted = counter.empty() ? by_counter.end() : by_counter.find(counter);
            const auto clocked = clock.empty() ? by_clock.end() : by_clock.find(clock);
            if (counted != by_counter.end()) {
                join(r, counted->second, ClockSource::same_counter);
            } else if (clocked != by_clock.end()) {
                join(r, clocked->second, ClockSource::same_clock);
            } else {
                out_.clocks[r].domain = out_.domains++;
                out_.clocks[r].source = r == 0 ? ClockSource::reference : ClockSource::unknown;
            }
            // What leads to the domain's clock: its first rank, or one that joined by the same clock.
            const bool exact = out_.clocks[r].source != ClockSource::same_counter;
            if (!clock.empty() && exact) {
                by_clock.emplace(clock, r);
            }
            if (!counter.empty() && exact) {
                by_counter.emplace(counter, r);
            }
        }
    }

    // --- Joints, as the domains saw them ---

    void see_joints() {
        for (std::uint32_t j = 0; j < joints_.joints.size(); ++j) {
            Joint& joint = joints_.joints[j];
            const std::size_t begin = seen_.size();
            const JointKind kind = joints_.streams[joint.stream].kind;
            const bool message = kind == JointKind::message || kind == JointKind::transfer;
            for (std::uint32_t p = 0; p < joint.parts; ++p) {
                const JointPart& part = joints_.parts[joint.first_part + p];
                const RankEvent& event = job_.ranks[part.rank].events.events[part.event];
                const RankClock& clock = out_.clocks[part.rank];
                SeenJoint& seen = seen_of(begin, clock.domain);
                if (!message || p == 0) {
                    seen.last_begin = std::max(seen.last_begin, clock.in_domain(event.begin) - event.error);
                    seen.begins = true;
                }
                if (!message || p == 1) {
                    seen.first_end = std::min(seen.first_end, clock.in_domain(event.end) + event.error);
                    seen.ends = true;
                }
            }
            ends_.push_back(seen_.size());
            if (!message || joint.directed) {
                joint.contradicts =
                    std::any_of(seen_.begin() + static_cast<std::ptrdiff_t>(begin), seen_.end(),
                                [](const SeenJoint& s) { return s.begins && s.ends && s.first_end < s.last_begin; });
                contradicting_ += joint.contradicts ? 1 : 0;
            }
        }
        if (contradicting_ != 0) {
            out_.notes.push_back(
                std::to_string(contradicting_) +
                " collectives ended on one rank before another rank with the same clock began them: they are none of one "
                "another, or do not block. They are left out.");
        }
    }

    /// What that domain has of the joint whose first one lies at `begin`.
    SeenJoint& seen_of(std::size_t begin, std::uint32_t domain) {
        slots_.resize(out_.domains, 0);
        std::size_t& slot = slots_[domain];
        if (slot < begin || slot >= seen_.size() || seen_[slot].domain != domain) {
            slot = seen_.size();
            seen_.emplace_back().domain = domain;
        }
        return seen_[slot];
    }

    [[nodiscard]] bool is_evidence(const Joint& joint, bool exchanges) const {
        const JointKind kind = joints_.streams[joint.stream].kind;
        return !joint.contradicts &&
               (kind == JointKind::blocking || joint.directed || (kind == JointKind::exchange && exchanges));
    }
    [[nodiscard]] bool has_exchanges() const {
        return std::any_of(joints_.streams.begin(), joints_.streams.end(),
                           [](const JointStream& s) { return s.kind == JointKind::exchange; });
    }

    // --- Bands ---

    /// Rounds, until the bands of all domains that can have one stand: what a round learns of one clock bounds the others.
    void solve(bool exchanges) {
        double before = infinity;
        for (int round = 0; round < most_rounds && out_.domains > 1; ++round) {
            const int known = sides();
            std::vector<std::vector<Bound>> upper(out_.domains), lower(out_.domains);
            add_given(upper, lower);
            for (std::size_t j = 0, begin = 0; j < joints_.joints.size(); begin = ends_[j++]) {
                if (is_evidence(joints_.joints[j], exchanges)) {
                    add_bounds(begin, ends_[j], upper, lower);
                }
            }
            for (std::uint32_t d = 1; d < out_.domains; ++d) {
                bands_[d] = ClockBand::of(std::move(upper[d]), std::move(lower[d]));
            }
            const double now = width();
            if (sides() == known && now > before * (1 - least_progress)) {
                break;
            }
            before = sides() == known ? now : infinity;
        }
    }

    void add_bounds(std::size_t begin, std::size_t end, std::vector<std::vector<Bound>>& upper,
                    std::vector<std::vector<Bound>>& lower) const {
        BestTwo ends;   // the earliest that the joint may have ended on a rank of another domain
        BestTwo begins; // the latest that it has begun there, its sign turned
        for (std::size_t i = begin; i < end; ++i) {
            const SeenJoint& seen = seen_[i];
            if (seen.ends) {
                ends.add(static_cast<double>(seen.first_end) + bands_[seen.domain].at(seen.first_end).most,
                         seen.domain);
            }
            if (seen.begins) {
                begins.add(-static_cast<double>(seen.last_begin) - bands_[seen.domain].at(seen.last_begin).least,
                           seen.domain);
            }
        }
        for (std::size_t i = begin; i < end; ++i) {
            const SeenJoint& seen = seen_[i];
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

    /// What a rank's wall clock says of the moments of its own clock less what the first rank's says of its own.
    [[nodiscard]] std::optional<double> wall_correction(const recording::ClockPair& pair) const {
        if (job_.ranks[0].clock_pairs.empty() || pair.realtime_ns == 0 ||
            job_.ranks[0].clock_pairs.front().realtime_ns == 0) {
            return std::nullopt;
        }
        const recording::ClockPair& first = job_.ranks[0].clock_pairs.front();
        return static_cast<double>((pair.realtime_ns - pair.monotonic_ns) - (first.realtime_ns - first.monotonic_ns));
    }

    void add_given(std::vector<std::vector<Bound>>& upper, std::vector<std::vector<Bound>>& lower) const {
        for (const GivenOffset& one : given_) {
            for (std::uint32_t r = 1; r < job_.ranks.size(); ++r) {
                if (one.rank && *one.rank != job_.ranks[r].number) {
                    continue;
                }
                const RankClock& clock = out_.clocks[r];
                for (const recording::ClockPair& pair : job_.ranks[r].clock_pairs) {
                    if (const auto said = wall_correction(pair)) {
                        const std::int64_t at = clock.in_domain(pair.monotonic_ns);
                        const double middle = *said - one.ahead_ns - static_cast<double>(at - pair.monotonic_ns);
                        upper[clock.domain].push_back(
                            {at, static_cast<std::int64_t>(std::ceil(middle + one.error_ns))});
                        lower[clock.domain].push_back(
                            {at, static_cast<std::int64_t>(std::floor(middle - one.error_ns))});
                    }
                }
            }
        }
    }

    [[nodiscard]] int sides() const {
        int sum = 0;
        for (const ClockBand& band : bands_) {
            sum += band.sides();
        }
        return sum;
    }
    [[nodiscard]] double width() const {
        double sum = 0;
        for (const RankClock& clock : out_.clocks) {
            const ClockBand& band = bands_[clock.domain];
            const auto& events = job_.ranks[static_cast<std::size_t>(&clock - out_.clocks.data())].events;
            sum += band.found() ? band.at(clock.in_domain((events.first_ns + events.last_ns) / 2)).width() : 0;
        }
        return sum;
    }

    void finish() {
        for (std::uint32_t r = 0; r < job_.ranks.size(); ++r) {
            RankClock& clock = out_.clocks[r];
            clock.band = bands_[clock.domain];
            const RankEvents& events = job_.ranks[r].events;
            clock.first = events.first_ns;
            clock.last = events.last_ns;
            if (clock.source == ClockSource::unknown || !clock.band.found()) {
                clock.source = clock.band.found()                              ? ClockSource::bounds
                               : clock.band.state() == ClockBand::State::empty ? ClockSource::contradicting
                                                                               : ClockSource::unknown;
            }
            if (clock.source == ClockSource::contradicting) {
                out_.contradictions.push_back(
                    "rank " + std::to_string(job_.ranks[r].number) +
                    ": no offset and drift of its clock fits what its collectives say; bounds miss each other by " +
                    std::to_string(static_cast<long long>(std::ceil(clock.band.contradiction() / 1e3))) +
                    " us. A clock that was set or slewed meanwhile does that, and so does a scope that does not block");
            }
            set_wall(r, clock);
        }
    }

    void set_wall(std::uint32_t r, RankClock& clock) const {
        const auto& pairs = job_.ranks[r].clock_pairs;
        if (!clock.found() || pairs.empty()) {
            return;
        }
        const auto first = wall_correction(pairs.front());
        const auto last = wall_correction(pairs.back());
        if (!first || !last) {
            return;
        }
        // At the recording's ends, along the line through both pairs.
        const auto length = static_cast<double>(pairs.back().monotonic_ns - pairs.front().monotonic_ns);
        const double slope = length > 0 ? (*last - *first) / length : 0;
        const auto said_at = [&](std::int64_t moment) {
            return *first + slope * static_cast<double>(moment - pairs.front().monotonic_ns);
        };
        const auto allowed = [&](std::int64_t moment) {
            const ClockSpan job = clock.in_job(moment);
            const double said = static_cast<double>(moment) + said_at(moment);
            return said >= job.least - 1 && said <= job.most + 1;
        };
        if (allowed(clock.first) && allowed(clock.last)) {
            clock.wall = ClockSpan{said_at(clock.first), said_at(clock.last)};
        }
    }

    const Job& job_;
    Joints& joints_;
    const std::vector<GivenOffset>& given_;
    RankAlignment out_;
    std::vector<ClockBand> bands_; // by domain
    std::vector<SeenJoint> seen_;
    std::vector<std::size_t> ends_;  // in seen_, by joint
    std::vector<std::size_t> slots_; // the last one of each domain
    std::uint64_t contradicting_ = 0;
};

} // namespace

std::int64_t RankClock::in_domain(std::int64_t moment) const {
    return plus(moment, offset + drift * static_cast<double>(moment - at));
}

ClockSpan RankClock::in_job(std::int64_t moment) const {
    const std::int64_t here = in_domain(moment);
    const ClockSpan correction = band.at(here);
    return {static_cast<double>(here) + correction.least, static_cast<double>(here) + correction.most};
}

double RankClock::estimate(std::int64_t moment) const {
    if (!wall) {
        return in_job(moment).middle();
    }
    const auto length = static_cast<double>(std::max<std::int64_t>(last - first, 1));
    return static_cast<double>(moment) + wall->least + wall->width() * static_cast<double>(moment - first) / length;
}

RankAlignment align(const Job& job, Joints& joints, const std::vector<GivenOffset>& given) {
    return ClockAligner(job, joints, given).run();
}

} // namespace plumb::ranks
