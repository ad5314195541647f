// SPDX-License-Identifier: Apache-2.0
#include "analysis/off_cpu.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "stats/figure.hpp"

namespace plumb::analysis {
namespace {

using base::not_counted;
using recording::OffCpuSample;
using recording::ThreadSample;

constexpr const char* no_samples =
    "the recording holds no samples of it: a trace, an older version, another system or a clock of the caller's";
constexpr const char* not_covered =
    "no two samples lie in these steps: they are 100 ms apart, and what happened between two cannot be split";
constexpr const char* not_kept = "this kernel does not count it (CONFIG_SCHED_INFO), or /proc is not readable";

constexpr const char* not_kept_of_any =
    "of no thread is it known: none is in both samples, the kernel does not count it (CONFIG_SCHED_INFO), or /proc is "
    "not readable";

using Shares = std::array<double, 4>; // of an interval, by phase: in counted steps

/// Of an interval: in less of it, what was counted may have happened elsewhere.
constexpr double least_share = 0.9;

/// How much of an interval lies in counted steps, or 0 where that is too little. Intervals are asked for in order.
class CountedSteps {
  public:
    CountedSteps(const resolve::StepTable& steps, std::optional<std::uint64_t> only) : steps_(steps), only_(only) {}

    [[nodiscard]] Shares of(std::int64_t begin, std::int64_t end) {
        while (next_ < steps_.size() && steps_[next_].end_ns <= begin) {
            ++next_;
        }
        Shares shares{};
        for (std::size_t i = next_; i < steps_.size() && steps_[i].period_begin_ns < end; ++i) {
            const resolve::ResolvedStep& step = steps_[i];
            const bool wanted = only_ ? step.id == *only_ : step.counted && !step.warmup && !step.left_out;
            const std::int64_t overlap = std::min(end, step.end_ns) - std::max(begin, step.period_begin_ns);
            if (wanted && overlap > 0) {
                shares[static_cast<std::size_t>(step.phase)] +=
                    static_cast<double>(overlap) / static_cast<double>(end - begin);
            }
        }
        for (double& share : shares) {
            share = share < least_share ? 0 : share;
        }
        return shares;
    }

  private:
    const resolve::StepTable& steps_;
    const std::optional<std::uint64_t> only_;
    std::size_t next_ = 0;
};

/// What was counted between two readings; absent where one is missing or it went back.
std::optional<double> grown(std::uint64_t before, std::uint64_t after) {
    return before == not_counted || after == not_counted || after < before
               ? std::nullopt
               : std::optional(static_cast<double>(after - before));
}

struct Spent {
    double on_cpu = 0, run_queue = 0, blocked = 0;
};

/// The same thread in the sample before (null: it is not there), and what it spent since; none where nobody counted it.
struct Since {
    const ThreadSample* then = nullptr;
    std::optional<Spent> spent;
};

/// By track, the first of each.
std::unordered_map<std::uint32_t, const ThreadSample*> threads_of(const OffCpuSample& sample) {
    std::unordered_map<std::uint32_t, const ThreadSample*> threads;
    for (const ThreadSample& thread : sample.threads) {
        threads.try_emplace(thread.track, &thread);
    }
    return threads;
}

/// What each thread of each sample spent since the sample before. The kernel books a stretch when it ends: what is booked in an
/// interval and does not fit into it was spent in those before.
class SpentBetween {
  public:
    explicit SpentBetween(const std::vector<OffCpuSample>& samples) : since_(samples.size()) {
        std::map<std::uint32_t, Spent> late; // by track
        for (std::size_t i = samples.size(); i-- > 1;) {
            const OffCpuSample &before = samples[i - 1], &after = samples[i];
            since_[i].resize(after.threads.size());
            const auto length = static_cast<double>(after.monotonic_ns - before.monotonic_ns);
            const auto threads = threads_of(before);
            for (std::size_t k = 0; k < after.threads.size(); ++k) {
                const ThreadSample& now = after.threads[k];
                const auto then = threads.find(now.track);
                if (then == threads.end()) {
                    late.erase(now.track);
                    continue;
                }
                since_[i][k].then = then->second;
                if (length > 0) {
                    since_[i][k].spent = of(then->second->times, now.times, length, late[now.track]);
                }
            }
        }
    }

    /// Of the thread at that place in sample `i`.
    [[nodiscard]] const Since& at(std::size_t i, std::size_t thread) const { return since_[i][thread]; }

  private:
    /// `late`: what the interval behind had no room for; becomes what this one has none for. A kernel that keeps no such times gives
    /// 0 for both from the beginning.
    static std::optional<Spent> of(const base::ThreadTimes& before, const base::ThreadTimes& after, double length,
                                   Spent& late) {
        const std::optional<double> run = grown(before.run_ns, after.run_ns),
                                    wait = grown(before.waited_ns, after.waited_ns);
        if (!run || !wait || (after.run_ns == 0 && after.waited_ns == 0)) {
            late = {};
            return std::nullopt;
        }
        const Spent booked{*run + late.on_cpu, *wait + late.run_queue};
        late.on_cpu = std::max(0.0, booked.on_cpu - length);
        const double on_cpu = booked.on_cpu - late.on_cpu;
        late.run_queue = std::max(0.0, on_cpu + booked.run_queue - length);
        const double run_queue = booked.run_queue - late.run_queue;
        return Spent{on_cpu, run_queue, length - on_cpu - run_queue};
    }

    std::vector<std::vector<Since>> since_;
};

/// Samples that follow each other, in order of time, and each thread that is in both.
template <class Interval, class Thread>
void walk(const std::vector<OffCpuSample>& samples, Interval&& interval, Thread&& thread) {
    const SpentBetween spent(samples);
    for (std::size_t i = 1; i < samples.size(); ++i) {
        const OffCpuSample &before = samples[i - 1], &after = samples[i];
        if (after.monotonic_ns <= before.monotonic_ns) {
            continue;
        }
        interval(before, after);
        for (std::size_t k = 0; k < after.threads.size(); ++k) {
            if (const Since& since = spent.at(i, k); since.then != nullptr) {
                thread(*since.then, after.threads[k], since.spent);
            }
        }
    }
}

void add(Figure& figure, std::optional<double> value, double share) {
    if (value) {
        figure.value = figure.value.value_or(0) + *value * share;
    }
}

void give_reason(Figure& figure, const char* reason) {
    if (!figure.value) {
        figure.reason = reason;
    }
}

class Causes {
  public:
    Causes(const recording::RunFacts& facts, const resolve::StepTable& steps, std::optional<std::uint64_t> only)
        : facts_(facts), counted_(steps, only) {
        for (const recording::TrackInfo& track : facts.tracks) {
            names_.try_emplace(track.id, &track.name);
        }
    }

    std::array<OffCpuCauses, 4> build() {
        walk(
            facts_.off_cpu, [this](const auto& before, const auto& after) { interval(before, after); },
            [this](const ThreadSample& then, const ThreadSample& now, const std::optional<Spent>& spent) {
                thread(now.track, spent);
                migrations(then, now);
            });
        for (std::size_t phase = 0; phase < made_.size(); ++phase) {
            finish(phase);
        }
        return std::move(made_);
    }

  private:
    void interval(const OffCpuSample& before, const OffCpuSample& after) {
        shares_ = counted_.of(before.monotonic_ns, after.monotonic_ns);
        length_ = static_cast<double>(after.monotonic_ns - before.monotonic_ns);
        for (std::size_t phase = 0; phase < made_.size(); ++phase) {
            if (!(shares_[phase] > 0)) {
                continue;
            }
            OffCpuCauses& made = made_[phase];
            const auto grew = [&](std::uint64_t base::ProcessTimes::*count) {
                return grown(before.process.*count, after.process.*count);
            };
            ++made.intervals;
            made.covered_ns += shares_[phase] * length_;
            made.threads_left_out = std::max(made.threads_left_out, after.threads_left_out);
            add(made.minor_faults, grew(&base::ProcessTimes::minor_faults), shares_[phase]);
            add(made.major_faults, grew(&base::ProcessTimes::major_faults), shares_[phase]);
            add(made.voluntary_switches, grew(&base::ProcessTimes::voluntary_switches), shares_[phase]);
            add(made.involuntary_switches, grew(&base::ProcessTimes::involuntary_switches), shares_[phase]);
            add(made.stolen_ns, grew(&base::ProcessTimes::stolen_ns), shares_[phase]);
        }
    }

    void thread(std::uint32_t track, const std::optional<Spent>& spent) {
        for (std::size_t phase = 0; spent && phase < made_.size(); ++phase) {
            if (const double share = shares_[phase]; share > 0) {
                OffCpuThread& thread = threads_[phase][track];
                thread.observed_ns += share * (spent->on_cpu + spent->run_queue + spent->blocked);
                thread.on_cpu_ns += share * spent->on_cpu;
                thread.run_queue_ns += share * spent->run_queue;
                thread.blocked_ns += share * spent->blocked;
            }
        }
    }

    /// Read more seldom than the rest: spread over the time since the reading before.
    void migrations(const ThreadSample& then, const ThreadSample& now) {
        Migrations& last = migrations_[now.track];
        if (then.times.migrations != not_counted && last.value == not_counted) {
            last.value = then.times.migrations;
        }
        for (std::size_t phase = 0; phase < made_.size(); ++phase) {
            last.counted_ns[phase] += shares_[phase] * length_;
        }
        last.ns += length_;
        if (now.times.migrations == not_counted) {
            return;
        }
        if (const std::optional<double> more = grown(last.value, now.times.migrations)) {
            for (std::size_t phase = 0; phase < made_.size(); ++phase) {
                if (last.counted_ns[phase] >= least_share * last.ns) {
                    OffCpuThread& thread = threads_[phase][now.track];
                    add(thread.migrations, more, last.counted_ns[phase] / last.ns);
                    thread.migrations_observed_ns += last.counted_ns[phase];
                }
            }
        }
        last = {now.times.migrations, 0, {}};
    }

    void finish(std::size_t phase) {
        OffCpuCauses& made = made_[phase];
        for (auto& [track, thread] : threads_[phase]) {
            if (!(thread.observed_ns > 0)) {
                continue;
            }
            const auto name = names_.find(track);
            thread.name = name == names_.end() ? "thread " + std::to_string(track) : *name->second;
            give_reason(thread.migrations,
                        "it is read once a second: the steps are too short, or /proc is not readable");
            add(made.run_queue_ns, thread.run_queue_ns, 1);
            add(made.blocked_ns, thread.blocked_ns, 1);
            made.threads.push_back(std::move(thread));
        }
        std::stable_sort(made.threads.begin(), made.threads.end(), [](const OffCpuThread& a, const OffCpuThread& b) {
            return a.run_queue_ns + a.blocked_ns > b.run_queue_ns + b.blocked_ns;
        });
        const char* const reason = facts_.off_cpu.empty() ? no_samples : made.intervals == 0 ? not_covered : not_kept;
        for (Figure* figure : {&made.run_queue_ns, &made.blocked_ns, &made.stolen_ns, &made.minor_faults,
                               &made.major_faults, &made.voluntary_switches, &made.involuntary_switches}) {
            give_reason(*figure, reason);
        }
    }

    struct Migrations {
        std::uint64_t value = not_counted;
        double ns = 0; // since it was read, and of these in counted steps
        Shares counted_ns{};
    };

    const recording::RunFacts& facts_;
    std::unordered_map<std::uint32_t, const std::string*> names_; // of tracks
    CountedSteps counted_;
    Shares shares_{};
    double length_ = 0; // of the interval, as the shares
    std::array<OffCpuCauses, 4> made_;
    std::array<std::map<std::uint32_t, OffCpuThread>, 4> threads_;
    std::map<std::uint32_t, Migrations> migrations_;
};

} // namespace

std::array<OffCpuCauses, 4> off_cpu_causes(const recording::RunFacts& facts, const resolve::StepTable& steps,
                                           std::optional<std::uint64_t> only) {
    return Causes(facts, steps, only).build();
}

std::vector<OffCpuInterval> off_cpu_intervals(const recording::RunFacts& facts, const resolve::StepTable& steps) {
    constexpr std::size_t most = 1000;
    std::vector<OffCpuInterval> made;
    if (steps.empty()) {
        return made;
    }
    const std::int64_t first = steps[0].begin_ns;
    const std::size_t together = (facts.off_cpu.size() + most - 1) / most;
    std::size_t count = 0;
    walk(
        facts.off_cpu,
        [&](const OffCpuSample& before, const OffCpuSample& after) {
            if (count++ % together == 0) {
                made.emplace_back().begin_ns = before.monotonic_ns - first;
            }
            made.back().length_ns += after.monotonic_ns - before.monotonic_ns;
            add(made.back().stolen_ns, grown(before.process.stolen_ns, after.process.stolen_ns), 1);
        },
        [&](const ThreadSample&, const ThreadSample&, const std::optional<Spent>& spent) {
            if (spent) {
                add(made.back().on_cpu_ns, spent->on_cpu, 1);
                add(made.back().run_queue_ns, spent->run_queue, 1);
                add(made.back().blocked_ns, spent->blocked, 1);
            }
        });
    for (OffCpuInterval& interval : made) {
        for (Figure* figure : {&interval.on_cpu_ns, &interval.run_queue_ns, &interval.blocked_ns}) {
            give_reason(*figure, not_kept_of_any);
        }
        give_reason(interval.stolen_ns, not_kept);
    }
    return made;
}

} // namespace plumb::analysis
