// SPDX-License-Identifier: Apache-2.0
#include "answers/steps/steps.hpp"

#include <algorithm>
#include <array>

#include "analysis/loss_note.hpp"
#include "analysis/no_step.hpp"
#include "answers/reading.hpp"
#include "stats/distribution.hpp"
#include "stats/figure.hpp"

namespace plumb {
namespace {

constexpr std::size_t most_listed = 100'000;

class StepsReader final : public read::Observer {
  public:
    StepsReader(const recording::RunFacts& facts, const StepsOptions& options) : options_(options) {
        analysis::add_loss_note(analysis::lost_of(facts), out_.notes);
    }
    void steps_known(const resolve::StepTable& steps, const resolve::TrackTable&) override;
    [[nodiscard]] Result<StepsReport> take() {
        if (out_.steps == 0) {
            return Error{ErrorCode::not_found, no_step_};
        }
        return std::move(out_);
    }

  private:
    static std::int64_t period_of(const resolve::ResolvedStep& step) { return step.end_ns - step.period_begin_ns; }
    static bool is_counted(const resolve::ResolvedStep& step) { return step.counted && !step.warmup && !step.left_out; }
    void list(const resolve::ResolvedStep& step);
    void find_slowest(const resolve::StepTable& steps);

    const StepsOptions options_;
    StepsReport out_;
    std::int64_t first_ns_ = 0, last_end_ns_ = 0;
    std::int64_t last_id_ = 0;
    std::string no_step_; // why there is none
};

void StepsReader::list(const resolve::ResolvedStep& step) {
    if (out_.periods_ns.empty()) {
        last_end_ns_ = step.period_begin_ns;
    }
    const auto id = static_cast<std::int64_t>(step.id);
    out_.id_deltas.push_back(id - last_id_);
    out_.gaps_ns.push_back(step.period_begin_ns - last_end_ns_);
    out_.periods_ns.push_back(period_of(step));
    out_.phases += "npdm"[static_cast<std::size_t>(step.phase)];
    out_.marks += step.warmup ? 'w' : is_counted(step) ? '.' : 's';
    last_id_ = id;
    last_end_ns_ = step.end_ns;
}

void StepsReader::find_slowest(const resolve::StepTable& steps) {
    std::array<stats::DurationStatistics, 4> periods;
    std::vector<std::size_t> counted;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (is_counted(steps[i])) {
            periods[static_cast<std::size_t>(steps[i].phase)].add(static_cast<std::uint64_t>(period_of(steps[i])));
            counted.push_back(i);
        }
    }
    out_.counted = counted.size();
    const auto end =
        counted.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(options_.slowest, counted.size()));
    std::partial_sort(counted.begin(), end, counted.end(), [&](std::size_t a, std::size_t b) {
        const std::int64_t of_a = period_of(steps[a]), of_b = period_of(steps[b]);
        return of_a != of_b ? of_a > of_b : a < b;
    });
    for (auto i = counted.begin(); i != end; ++i) {
        const resolve::ResolvedStep& step = steps[*i];
        SlowStep& slow = out_.slowest.emplace_back();
        slow.step = step.id;
        slow.phase = step.phase;
        slow.begin_ns = step.period_begin_ns - first_ns_;
        slow.period_ns = static_cast<double>(period_of(step));
        slow.span_ns = static_cast<double>(step.end_ns - step.begin_ns);
        if (const std::uint64_t tokens = step.prefill_tokens + step.decode_tokens; tokens != 0) {
            slow.tokens = tokens;
        }
        const Figure median = periods[static_cast<std::size_t>(step.phase)].finish().p50_ns;
        slow.times_median = !median.value       ? median
                            : *median.value > 0 ? stats::measured(slow.period_ns / *median.value)
                                                : stats::absent("the median is 0");
    }
}

void StepsReader::steps_known(const resolve::StepTable& steps, const resolve::TrackTable&) {
    if (steps.empty()) {
        no_step_ = analysis::no_step(steps);
    } else {
        first_ns_ = steps[0].period_begin_ns;
    }
    out_.steps = steps.size();
    out_.every = (steps.size() + most_listed - 1) / most_listed;
    for (std::size_t first = 0; first < steps.size(); first += out_.every) {
        std::size_t longest = first;
        for (std::size_t i = first; i < std::min<std::size_t>(first + out_.every, steps.size()); ++i) {
            longest = period_of(steps[i]) > period_of(steps[longest]) ? i : longest;
        }
        list(steps[longest]);
    }
    find_slowest(steps);
}

Result<answers::Pending<StepsReport>> begin(answers::Reading& reading, const StepsOptions& options) {
    auto& steps = reading.join<StepsReader>(reading.facts(), options);
    return answers::Pending<StepsReport>([&steps] { return steps.take(); });
}

} // namespace

Result<StepsReport> read_steps(const std::vector<std::string>& files, const StepsOptions& options) {
    return answers::read_one<StepsReport>(files.front(),
                                          [&](answers::Reading& reading) { return begin(reading, options); });
}

const answers::Entry& steps_answer() {
    static const answers::Entry entry = answers::joining_entry<StepsOptions, StepsReport, begin>(
        "steps", "Show how long each step took, and the slowest");
    return entry;
}

} // namespace plumb
