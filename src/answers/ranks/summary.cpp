// SPDX-License-Identifier: Apache-2.0
#include "answers/ranks/summary.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "ranks/late.hpp"
#include "stats/median.hpp"

namespace plumb::ranks {
namespace {

constexpr double arrival_share = 2.0 / 3; // of the time that is waiting: from here on it is an arrival
constexpr double transfer_share = 1.0 / 3;
constexpr double least_cost = 0.01;     // of the run
constexpr double least_idle_more = 0.1; // of a late rank's devices than of the others': then its host is late
constexpr std::size_t most_worst = 20;
constexpr std::size_t most_arrivals = 8;

void add(TimeRange& to, const ClockSpan& from) {
    to.least_ns += from.least;
    to.most_ns += from.most;
}
TimeRange mean(const TimeRange& sum, std::uint64_t count) {
    const double n = count == 0 ? 1 : static_cast<double>(count);
    return {sum.least_ns / n, sum.most_ns / n};
}
double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

/// The whole interval must clear the margin.
WaitVerdict verdict_of(double least, double most) {
    return least >= arrival_share                             ? WaitVerdict::arrival
           : most <= transfer_share                           ? WaitVerdict::transfer
           : least >= transfer_share && most <= arrival_share ? WaitVerdict::mixed
                                                              : WaitVerdict::inconclusive;
}

struct CollectiveSums {
    std::uint64_t joints = 0, parts = 0;
    TimeRange wait;
    double time = 0;
    std::uint64_t verdicts[4] = {};
    std::vector<std::uint64_t> last; // by rank
    std::vector<double> begin_spreads, end_spreads;
};

struct RankSums {
    TimeRange alone;
    std::map<std::uint32_t, std::pair<TimeRange, std::uint64_t>> layers;
};

class Summary {
  public:
    Summary(const Job& job, const Joints& joints, const RankAlignment& alignment)
        : job_(job), joints_(joints), alignment_(alignment), ranks_(job.ranks.size()) {}

    RanksReport make() {
        add_ranks();
        for_each_wait(job_, joints_, alignment_, [this](const JointWait& wait) { take(wait); });
        finish_rows();
        finish_ranks();
        add_late();
        add_experts();
        add_transfers();
        out_.contradictions = alignment_.contradictions;
        out_.notes.insert(out_.notes.begin(), job_.notes.begin(), job_.notes.end());
        out_.notes.insert(out_.notes.end(), joints_.notes.begin(), joints_.notes.end());
        out_.notes.insert(out_.notes.end(), alignment_.notes.begin(), alignment_.notes.end());
        note_unknown();
        return std::move(out_);
    }

  private:
    [[nodiscard]] const RankEvent& event_of(const JointPart& part) const {
        return job_.ranks[part.rank].events.events[part.event];
    }

    void add_ranks() {
        std::set<std::string> hosts;
        for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
            const Rank& rank = job_.ranks[r];
            const RankClock& clock = alignment_.clocks[r];
            RankRow& row = out_.ranks.emplace_back();
            row.rank = rank.number;
            row.file = rank.path;
            row.trace = rank.trace;
            row.host = rank.metadata.host;
            row.clock = clock.source;
            row.busy_share = rank.events.busy_share;
            row.hidden_share =
                !rank.events.hidden_ns.value ? rank.events.hidden_ns
                : rank.events.collective_ns == 0
                    ? Figure{std::nullopt, "it has no collectives"}
                    : Figure{share(*rank.events.hidden_ns.value, static_cast<double>(rank.events.collective_ns)), {}};
            if (!rank.metadata.host.empty()) {
                hosts.insert(rank.metadata.host);
            }
            set_clock(rank, clock, row);
            for (const std::string& loss : rank.losses) {
                out_.notes.push_back("rank " + std::to_string(rank.number) + ": " + loss);
            }
        }
        if (std::any_of(job_.ranks.begin(), job_.ranks.end(),
                        [](const Rank& rank) { return rank.events.queues_sampled; })) {
            out_.notes.push_back(
                "Devices were timed in some steps only: busy % and hidden % of their ranks are of those.");
        }
        out_.world = job_.world;
        out_.numbered = job_.numbered;
        out_.hosts = hosts.size();
    }

    static void set_clock(const Rank& rank, const RankClock& clock, RankRow& row) {
        if (!clock.found()) {
            row.offset_ns = row.error_ns =
                row.drift_ppm = {std::nullopt, clock.source == ClockSource::contradicting
                                                   ? "what bounds its clock contradicts itself"
                                                   : "no collective bounds its clock on both sides"};
            return;
        }
        const std::int64_t first = rank.events.first_ns, last = rank.events.last_ns;
        const std::int64_t middle = first + (last - first) / 2;
        row.at_ns = middle;
        row.origin_ns = rank.origin_ns;
        row.offset_ns = {clock.estimate(middle) - static_cast<double>(middle), {}};
        // The band is convex: it is widest at an end.
        row.error_ns = {std::max(clock.in_job(first).width(), clock.in_job(last).width()) / 2, {}};
        const ClockSpan drift = clock.band.drift();
        row.drift_ppm = {(drift.middle() + clock.drift) * 1e6, {}};
    }

    void take(const JointWait& wait) {
        const JointStream& stream = joints_.streams[wait.joint->stream];
        ++out_.collectives;
        if (stream.kind == JointKind::transfer) {
            take_transfer(wait);
        } else if (stream.kind == JointKind::message) {
            const PartWait& receive = wait.parts[1];
            RankRow& row = out_.ranks[receive.part.rank];
            add(row.message_wait, receive.wait);
            ++row.messages;
        } else {
            take_collective(stream, wait);
        }
    }

    void take_collective(const JointStream& stream, const JointWait& wait) {
        const RankEvent& first = event_of(wait.parts.front().part);
        double begin[2] = {infinity, -infinity}, end[2] = {infinity, -infinity};
        ClockSpan most{0, 0}; // of the rank that waited longest
        TimeRange sum;
        double time = 0;
        std::uint32_t likely = 0;
        for (const PartWait& part : wait.parts) {
            const RankEvent& event = event_of(part.part);
            RankRow& row = out_.ranks[part.part.rank];
            RankSums& sums = ranks_[part.part.rank];
            add(row.wait, part.wait);
            add(sum, part.wait);
            most = {std::max(most.least, part.wait.least), std::max(most.most, part.wait.most)};
            const auto own = static_cast<double>(event.end - event.begin);
            row.time_ns += own;
            time += own;
            ++row.collectives;
            add(sums.alone, part.alone);
            row.last += part.last ? 1 : 0;
            row.last_at_most += part.may_be_last ? 1 : 0;
            if (event.layer_plus_one != 0) {
                auto& [ranges, count] = sums.layers[event.layer_plus_one - 1U];
                add(ranges, part.wait);
                ++count;
            }
            if (part.arrival > begin[1]) {
                begin[1] = part.arrival;
                likely = part.part.rank;
            }
            begin[0] = std::min(begin[0], part.arrival);
            end[0] = std::min(end[0], part.end);
            end[1] = std::max(end[1], part.end);
        }
        ++out_.ranks[likely].last_likely;
        first_ = std::min(first_, begin[0]);
        last_ = std::max(last_, end[1]);
        add(gain_, {sum.least_ns, sum.most_ns});
        if (first.step != not_said) {
            steps_.insert(first.step);
        }
        const WaitVerdict verdict = verdict_of(share(sum.least_ns, time), share(sum.most_ns, time));
        const auto count = [&](CollectiveSums& sums) {
            ++sums.joints;
            sums.parts += wait.parts.size();
            add(sums.wait, {sum.least_ns, sum.most_ns});
            sums.time += time;
            ++sums.verdicts[static_cast<std::size_t>(verdict)];
            sums.last.resize(job_.ranks.size());
            for (const PartWait& part : wait.parts) {
                sums.last[part.part.rank] += part.last ? 1 : 0;
            }
            sums.begin_spreads.push_back(begin[1] - begin[0]);
            sums.end_spreads.push_back(end[1] - end[0]);
        };
        count(groups_[{stream.brick, stream.group}]);
        if (first.layer_plus_one != 0) {
            count(layers_[{stream.brick, stream.group, first.layer_plus_one - 1U}]);
        }
        keep_if_worst(stream, wait, most, verdict);
        ++numbers_[wait.joint->stream];
    }

    void keep_if_worst(const JointStream& stream, const JointWait& wait, const ClockSpan& most, WaitVerdict verdict) {
        const auto longer = [](const CollectiveWait& a, const CollectiveWait& b) {
            return a.wait.least_ns > b.wait.least_ns;
        };
        if (most.least <= 0 || (out_.worst.size() == most_worst && out_.worst.back().wait.least_ns >= most.least)) {
            return;
        }
        const RankEvent& first = event_of(wait.parts.front().part);
        CollectiveWait made;
        made.brick = stream.brick;
        made.group = stream.group;
        if (first.layer_plus_one != 0) {
            made.layer = first.layer_plus_one - 1U;
        }
        if (first.step != not_said) {
            made.step = first.step;
        }
        made.number = numbers_[wait.joint->stream];
        made.wait = {most.least, most.most};
        made.verdict = verdict;
        std::vector<std::pair<double, std::uint32_t>> order;
        made.move = {0, infinity};
        for (const PartWait& part : wait.parts) {
            order.emplace_back(part.arrival, job_.ranks[part.part.rank].number);
            made.move = {std::max(made.move.least_ns, part.move.least), std::min(made.move.most_ns, part.move.most)};
        }
        made.move.most_ns = std::max(made.move.most_ns, made.move.least_ns);
        std::sort(order.begin(), order.end());
        for (std::size_t i = 0; i < order.size(); ++i) {
            if (i < most_arrivals / 2 || i + most_arrivals / 2 >= order.size()) {
                made.arrivals.push_back(order[i].second);
            }
        }
        out_.worst.insert(std::upper_bound(out_.worst.begin(), out_.worst.end(), made, longer), std::move(made));
        if (out_.worst.size() > most_worst) {
            out_.worst.pop_back();
        }
    }

    void take_transfer(const JointWait& wait) {
        const JointPart& a = wait.parts[0].part;
        const JointPart& b = wait.parts[1].part;
        const ClockSpan begin_a = alignment_.clocks[a.rank].in_job(event_of(a).begin);
        const ClockSpan begin_b = alignment_.clocks[b.rank].in_job(event_of(b).begin);
        const ClockSpan end_a = alignment_.clocks[a.rank].in_job(event_of(a).end);
        const ClockSpan end_b = alignment_.clocks[b.rank].in_job(event_of(b).end);
        auto& [sum, count] = transfers_[{a.rank, b.rank}];
        sum.least_ns += std::max(0.0, std::max(end_a.least, end_b.least) - std::min(begin_a.most, begin_b.most));
        sum.most_ns += std::max(end_a.most, end_b.most) - std::min(begin_a.least, begin_b.least);
        ++count;
    }

    CollectiveRow row_of(CollectiveSums& sums, const std::string& brick, const std::string& group) const {
        CollectiveRow row;
        row.brick = brick;
        row.group = group;
        row.collectives = sums.joints;
        row.wait = mean(sums.wait, sums.parts);
        row.move = mean({sums.time - sums.wait.most_ns, sums.time - sums.wait.least_ns}, sums.parts);
        row.least_share = share(sums.wait.least_ns, sums.time);
        row.most_share = share(sums.wait.most_ns, sums.time);
        row.verdict = verdict_of(row.least_share, row.most_share);
        row.inconclusive = sums.verdicts[0];
        row.arrivals = sums.verdicts[1];
        row.mixed = sums.verdicts[2];
        row.transfers = sums.verdicts[3];
        const auto most = std::max_element(sums.last.begin(), sums.last.end());
        row.last = *most;
        row.last_rank = job_.ranks[static_cast<std::size_t>(most - sums.last.begin())].number;
        row.begin_spread_ns = {stats::median(sums.begin_spreads), {}};
        row.end_spread_ns = {stats::median(sums.end_spreads), {}};
        return row;
    }

    void finish_rows() {
        for (auto& [key, sums] : groups_) {
            out_.groups.push_back(row_of(sums, key.first, key.second));
        }
        std::stable_sort(out_.groups.begin(), out_.groups.end(), [](const CollectiveRow& a, const CollectiveRow& b) {
            return a.wait.most_ns * static_cast<double>(a.collectives) >
                   b.wait.most_ns * static_cast<double>(b.collectives);
        });
        for (auto& [key, sums] : layers_) {
            out_.layers.push_back(row_of(sums, std::get<0>(key), std::get<1>(key)));
            out_.layers.back().layer = std::get<2>(key);
        }
        out_.steps = steps_.size();
        out_.run_ns = std::max(0.0, last_ - first_);
        out_.gain = mean(mean(gain_, job_.ranks.size()), out_.steps);
    }

    void finish_ranks() {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            RankRow& row = out_.ranks[r];
            row.alone_ns = row.last != 0 ? Figure{ranks_[r].alone.least_ns / static_cast<double>(row.last), {}}
                                         : Figure{std::nullopt, "it never certainly was the last"};
            for (const auto& [layer, cell] : ranks_[r].layers) {
                row.layers.push_back({layer, mean(cell.first, cell.second)});
            }
        }
    }

    void add_late() {
        const auto cost = [this](std::size_t r) {
            return share(ranks_[r].alone.least_ns, out_.run_ns);
        };
        for (const Late& found :
             find_late(job_, joints_, alignment_, [&](std::size_t r) { return cost(r) >= least_cost; })) {
            LateRank& late = out_.late.emplace_back();
            late.rank = out_.ranks[found.rank].rank;
            late.margin_ns = found.margin_ns;
            late.last = found.last;
            late.collectives = found.joints;
            late.expected = found.expected;
            late.alone_ns = found.alone_ns;
            late.cost = ranks_[found.rank].alone;
            late.cost_share = cost(found.rank);
            set_idle(found.rank, late);
        }
    }

    void set_idle(std::size_t r, LateRank& late) const {
        std::vector<double> others;
        for (std::size_t other = 0; other < out_.ranks.size(); ++other) {
            if (other != r && out_.ranks[other].busy_share.value) {
                others.push_back(1 - *out_.ranks[other].busy_share.value);
            }
        }
        const Figure& busy = out_.ranks[r].busy_share;
        if (!busy.value || others.empty()) {
            late.idle_share = late.others_idle_share = {
                std::nullopt, busy.value ? "of no other rank it is known how busy its devices were" : busy.reason};
            return;
        }
        late.idle_share = {1 - *busy.value, {}};
        late.others_idle_share = {stats::median(others), {}};
        late.host_bound = *late.idle_share.value >= *late.others_idle_share.value + least_idle_more;
    }

    void add_experts() {
        std::map<std::uint32_t, std::vector<std::pair<double, std::uint32_t>>> layers;
        for (const Rank& rank : job_.ranks) {
            for (const auto& [layer, load] : rank.events.experts) {
                layers[layer].emplace_back(load.elements, rank.number);
            }
        }
        for (const auto& [layer, loads] : layers) {
            ExpertRow row;
            row.layer = layer;
            double sum = 0;
            for (const auto& [elements, rank] : loads) {
                sum += elements;
                if (elements > row.most) {
                    row.most = elements;
                    row.rank = rank;
                }
            }
            row.mean = sum / static_cast<double>(loads.size());
            row.imbalance = share(row.most, row.mean);
            if (sum > 0) {
                out_.experts.push_back(row);
            }
        }
    }

    void add_transfers() {
        for (const auto& [pair, sums] : transfers_) {
            const Rank& from = job_.ranks[pair.first];
            const Rank& to = job_.ranks[pair.second];
            out_.transfers.push_back({from.number, to.number, from.metadata.host, to.metadata.host,
                                      sends_alone(from) && !sends_alone(to), sums.second,
                                      mean(sums.first, sums.second)});
        }
    }

    void note_unknown() {
        std::string names;
        std::size_t count = 0;
        for (std::size_t r = 0; r < job_.ranks.size(); ++r) {
            if (!alignment_.clocks[r].found()) {
                names +=
                    count++ < most_arrivals ? (names.empty() ? "" : ", ") + std::to_string(job_.ranks[r].number) : "";
            }
        }
        if (count != 0) {
            out_.notes.push_back("The clock of rank " + names + (count > most_arrivals ? " and others" : "") +
                                 " is not known: collectives that they are part of are not judged. Record collectives "
                                 "of all ranks, or give --offset.");
        }
        if (joints_.joints.empty()) {
            out_.notes.emplace_back("No collective was found on two ranks: put PLUMB_BRICK(prof, queue, "
                                    "plumb::Brick::all_reduce) and the like around each.");
        }
    }

    static constexpr double infinity = std::numeric_limits<double>::infinity();
    const Job& job_;
    const Joints& joints_;
    const RankAlignment& alignment_;
    RanksReport out_;
    std::vector<RankSums> ranks_;
    std::map<std::pair<std::string, std::string>, CollectiveSums> groups_;
    std::map<std::tuple<std::string, std::string, std::uint32_t>, CollectiveSums> layers_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<TimeRange, std::uint64_t>> transfers_;
    std::map<std::uint32_t, std::uint64_t> numbers_; // joints so far, by stream
    std::set<std::uint64_t> steps_;
    TimeRange gain_;
    double first_ = infinity, last_ = -infinity;
};

} // namespace

RanksReport summary_of(const Job& job, const Joints& joints, const RankAlignment& alignment) {
    return Summary(job, joints, alignment).make();
}

} // namespace plumb::ranks
