// SPDX-License-Identifier: Apache-2.0
#include "ranks/alignment.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "ranks/consistency.hpp"
#include "recording/calendar_time.hpp"

namespace plumb::ranks {
namespace {

constexpr std::size_t most_ignored_named = 8;

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

class ClockAligner {
  public:
    ClockAligner(const Job& job, Joints& joints, const std::vector<GivenOffset>& given)
        : job_(job), joints_(joints), given_(given) {}

    RankAlignment run() {
        find_domains();
        see_joints();
        add_given();
        ConsistentClocks found = find_consistent(evidence_, out_.domains);
        if (!exchanges_.seen.empty() && std::any_of(found.bands.begin(), found.bands.end(), [](const ClockBand& b) {
                return b.state() == ClockBand::State::open;
            })) {
            add_exchanges();
            found = find_consistent(evidence_, out_.domains);
            out_.notes.emplace_back("The clocks of some ranks are known from moe_dispatch and moe_combine alone, as if "
                                    "each of these ended on no rank before the last rank began it.");
        }
        finish(std::move(found));
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
            const std::string clock = shared_clock(job_.ranks[r]);
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
        std::vector<SeenJoint> seen; // of one joint
        std::uint64_t contradicting = 0;
        for (Joint& joint : joints_.joints) {
            const JointKind kind = joints_.streams[joint.stream].kind;
            const bool message = kind == JointKind::message || kind == JointKind::transfer;
            see(joint, message, seen);
            if (!message || joint.directed) {
                joint.contradicts = std::any_of(seen.begin(), seen.end(), [](const SeenJoint& s) {
                    return s.begins && s.ends && s.first_end < s.last_begin;
                });
                contradicting += joint.contradicts ? 1 : 0;
            }
            // Of one clock alone there is nothing to learn.
            if (!joint.contradicts && seen.size() > 1 && (!message || joint.directed)) {
                SeenJoints& to = kind == JointKind::exchange ? exchanges_ : evidence_;
                to.seen.insert(to.seen.end(), seen.begin(), seen.end());
                to.close();
            }
        }
        if (contradicting != 0) {
            out_.notes.push_back(
                std::to_string(contradicting) +
                " collectives ended on one rank before another rank with the same clock began them: they are none of one "
                "another, or do not block. They are left out.");
        }
    }

    void see(const Joint& joint, bool message, std::vector<SeenJoint>& all) {
        all.clear();
        slots_.resize(out_.domains, 0);
        for (std::uint32_t p = 0; p < joint.parts; ++p) {
            const JointPart& part = joints_.parts[joint.first_part + p];
            const RankEvent& event = job_.ranks[part.rank].events.events[part.event];
            const RankClock& clock = out_.clocks[part.rank];
            std::size_t& slot = slots_[clock.domain];
            if (slot >= all.size() || all[slot].domain != clock.domain) {
                slot = all.size();
                all.emplace_back().domain = clock.domain;
            }
            SeenJoint& seen = all[slot];
            if (!message || p == 0) {
                seen.last_begin = std::max(seen.last_begin, clock.in_domain(event.begin) - event.error);
                seen.begins = true;
            }
            if (!message || p == 1) {
                seen.first_end = std::min(seen.first_end, clock.in_domain(event.end) + event.error);
                seen.ends = true;
            }
        }
    }

    void add_exchanges() {
        for_each_joint(exchanges_, [this](std::size_t begin, std::size_t end) {
            const auto all = exchanges_.seen.begin();
            evidence_.seen.insert(evidence_.seen.end(), all + static_cast<std::ptrdiff_t>(begin),
                                  all + static_cast<std::ptrdiff_t>(end));
            evidence_.close();
        });
    }

    /// What a rank's wall clock says of the moments of its own clock less what the first rank's says of its own. Where a tool wrote no
    /// wall clock, what its traces count from, often the boot of one machine: a guess, to be held against the band.
    [[nodiscard]] std::optional<double> wall_correction(const recording::ClockPair& pair) const {
        if (job_.ranks[0].clock_pairs.empty() || pair.realtime_ns == 0 ||
            job_.ranks[0].clock_pairs.front().realtime_ns == 0) {
            return std::nullopt;
        }
        const recording::ClockPair& first = job_.ranks[0].clock_pairs.front();
        return static_cast<double>((pair.realtime_ns - pair.monotonic_ns) - (first.realtime_ns - first.monotonic_ns));
    }

    [[nodiscard]] static bool has_calendar(const Rank& rank) {
        return std::any_of(rank.clock_pairs.begin(), rank.clock_pairs.end(), [](const recording::ClockPair& pair) {
            return recording::is_calendar_time(pair.realtime_ns);
        });
    }

    /// As two messages: one that the rank begins and the first clock ends, and one the other way round. An offset is one of wall clocks:
    /// without these it says nothing.
    void add_given() {
        const bool first = !job_.ranks[0].clock_pairs.empty() &&
                           recording::is_calendar_time(job_.ranks[0].clock_pairs.front().realtime_ns);
        std::set<std::uint32_t> ignored;
        for (const GivenOffset& one : given_) {
            for (std::uint32_t r = 1; r < job_.ranks.size(); ++r) {
                const RankClock& clock = out_.clocks[r];
                if ((one.rank && *one.rank != job_.ranks[r].number) || clock.domain == 0) {
                    continue;
                }
                if (!first || !has_calendar(job_.ranks[r])) {
                    ignored.insert(job_.ranks[r].number);
                    continue;
                }
                for (const recording::ClockPair& pair : job_.ranks[r].clock_pairs) {
                    const auto said = wall_correction(pair);
                    if (said && recording::is_calendar_time(pair.realtime_ns)) {
                        const std::int64_t at = clock.in_domain(pair.monotonic_ns);
                        const double middle = *said - one.ahead_ns - static_cast<double>(at - pair.monotonic_ns);
                        add_bound(clock.domain, at, 0,
                                  at + static_cast<std::int64_t>(std::ceil(middle + one.error_ns)));
                        add_bound(0, at + static_cast<std::int64_t>(std::floor(middle - one.error_ns)), clock.domain,
                                  at);
                    }
                }
            }
        }
        note_ignored({ignored.begin(), ignored.end()}, first);
    }

    void note_ignored(std::vector<std::uint32_t> ranks, bool first) {
        if (ranks.empty()) {
            return;
        }
        const std::size_t more = ranks.size() - std::min(ranks.size(), most_ignored_named);
        ranks.resize(ranks.size() - more);
        const bool one = ranks.size() == 1;
        out_.notes.push_back("--offset of " + listed(ranks) + (more != 0 ? " and others" : "") + " is ignored: " +
                             (!first ? "it is counted from the wall clock of rank " +
                                           std::to_string(job_.ranks[0].number) + ", whose recording says"
                              : one ? "its recording says"
                                    : "their recordings say") +
                             " no time of day.");
    }

    void add_bound(std::uint32_t from, std::int64_t begin, std::uint32_t to, std::int64_t end) {
        SeenJoint& first = evidence_.seen.emplace_back();
        first.domain = from;
        first.last_begin = begin;
        first.begins = true;
        SeenJoint& second = evidence_.seen.emplace_back();
        second.domain = to;
        second.first_end = end;
        second.ends = true;
        evidence_.close();
    }

    // --- What was found ---

    void finish(ConsistentClocks found) {
        for (std::uint32_t r = 0; r < job_.ranks.size(); ++r) {
            RankClock& clock = out_.clocks[r];
            clock.band = found.bands[clock.domain];
            const RankEvents& events = job_.ranks[r].events;
            clock.first = events.first_ns;
            clock.last = events.last_ns;
            if (clock.source == ClockSource::unknown || !clock.band.found()) {
                clock.source = clock.band.found()                              ? ClockSource::bounds
                               : clock.band.state() == ClockBand::State::empty ? ClockSource::contradicting
                                                                               : ClockSource::unknown;
            }
            set_wall(r, clock);
        }
        for (const Contradiction& one : found.contradictions) {
            out_.contradictions.push_back(sentence_of(one));
        }
        if (!found.proven) {
            out_.notes.emplace_back(
                "Whether one offset and drift for each clock fits all collectives at once was not found "
                "out: no two clocks contradict each other, several together may.");
        }
    }

    [[nodiscard]] std::string sentence_of(const Contradiction& one) const {
        std::vector<std::uint32_t> ranks;
        for (std::uint32_t r = 0; r < job_.ranks.size(); ++r) {
            if (std::binary_search(one.domains.begin(), one.domains.end(), out_.clocks[r].domain)) {
                ranks.push_back(job_.ranks[r].number);
            }
        }
        const std::string bounds =
            "bounds miss each other by " + std::to_string(static_cast<long long>(std::ceil(one.miss_ns / 1e3))) +
            " us. A clock that was set or slewed meanwhile does that, and so does a scope that does "
            "not block";
        if (one.domains.size() == 1) {
            return listed(ranks) + ": no offset and drift of " + (ranks.size() == 1 ? "its" : "their") +
                   " clock fits what its collectives say" +
                   (one.cause == Contradiction::Cause::alone ? ", and those of all others fit without it; " : "; ") +
                   bounds;
        }
        return listed(ranks) + ": their clocks contradict each other, and which of them is wrong is not known; " +
               bounds;
    }

    static std::string listed(const std::vector<std::uint32_t>& ranks) {
        std::string text = ranks.size() == 1 ? "rank " : "ranks ";
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            text += i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ";
            text += std::to_string(ranks[i]);
        }
        return text;
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
    SeenJoints evidence_, exchanges_;
    std::vector<std::size_t> slots_; // of each domain, in the joint that is looked at
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
