// SPDX-License-Identifier: Apache-2.0
#include "answers/check/call_counts.hpp"

#include <algorithm>
#include <unordered_map>

#include "analysis/brick_words.hpp"
#include "resolve/name_table.hpp"
#include "resolve/resolve.hpp"

namespace plumb {
namespace {

class CallCounter {
  public:
    CallCounter(resolve::RecordSource& source, Phase phase, const std::vector<ExpectedCalls>& expected);

    void steps_known(const resolve::StepTable& steps);
    void consume(const resolve::ResolvedBatch& batch);
    [[nodiscard]] std::vector<CallCount> finish() const;

  private:
    struct Brick {
        std::vector<std::uint32_t> calls; // by index of the step
        bool sometimes_timed = false;     // on a queue that is timed in some steps only
    };

    void add(std::uint16_t name, std::uint64_t step, std::uint32_t calls, bool sometimes_timed);
    void launched(const resolve::Submission& launch);
    [[nodiscard]] std::uint64_t asked(std::uint16_t name);
    [[nodiscard]] CallCount judge(std::size_t index) const;

    Phase phase_;
    const std::vector<ExpectedCalls>& expected_;
    resolve::NameTable names_;
    std::unordered_map<std::uint64_t, const recording::GraphInfo*> graphs_;
    std::unordered_map<std::uint16_t, std::uint64_t> asked_; // name -> a bit for each expectation that names it
    const resolve::StepTable* steps_ = nullptr;
    std::vector<Brick> bricks_;
    std::vector<bool> unknown_content_; // by index of the step: a graph ran of which nobody knows what is in it
    std::uint64_t last_id_ = resolve::no_step;
    std::size_t last_index_ = resolve::step_not_found;
};

CallCounter::CallCounter(resolve::RecordSource& source, Phase phase, const std::vector<ExpectedCalls>& expected)
    : phase_(phase), expected_(expected), names_(source.names()),
      bricks_(std::min(expected.size(), max_expected_calls)) {
    for (const recording::GraphInfo& graph : source.graphs()) {
        graphs_.emplace(graph.key, &graph);
    }
}

void CallCounter::steps_known(const resolve::StepTable& steps) {
    steps_ = &steps;
    for (Brick& brick : bricks_) {
        brick.calls.resize(steps.size());
    }
    unknown_content_.resize(steps.size());
}

std::uint64_t CallCounter::asked(std::uint16_t name) {
    const auto known = asked_.find(name);
    if (known != asked_.end()) {
        return known->second;
    }
    std::uint64_t bits = 0;
    const std::string text = names_.text(name);
    for (std::size_t i = 0; i < bricks_.size(); ++i) {
        bits |= analysis::names_brick(expected_[i].brick, text) ? std::uint64_t{1} << i : 0;
    }
    return asked_.emplace(name, bits).first->second;
}

void CallCounter::add(std::uint16_t name, std::uint64_t step, std::uint32_t calls, bool sometimes_timed) {
    const std::uint64_t bits = asked(name);
    if (bits == 0 || step == resolve::no_step) {
        return;
    }
    if (step != last_id_) {
        last_id_ = step;
        last_index_ = steps_->find(step);
    }
    if (last_index_ == resolve::step_not_found) {
        return;
    }
    for (std::size_t i = 0; i < bricks_.size(); ++i) {
        if ((bits >> i & 1) == 0) {
            continue;
        }
        bricks_[i].calls[last_index_] += calls;
        bricks_[i].sometimes_timed = bricks_[i].sometimes_timed || sometimes_timed;
    }
}

void CallCounter::launched(const resolve::Submission& launch) {
    const auto found = graphs_.find(launch.key);
    if (found == graphs_.end() || found->second->sites.empty()) {
        if (const std::size_t step = steps_->find(launch.step); step != resolve::step_not_found) {
            unknown_content_[step] = true;
        }
        return;
    }
    for (const recording::GraphSite& site : found->second->sites) {
        add(site.name, launch.step, 1, false);
    }
}

void CallCounter::consume(const resolve::ResolvedBatch& batch) {
    const recording::TrackInfo& track = batch.track->info;
    for (const resolve::Submission& submission : batch.submissions) {
        if (submission.graph) {
            launched(submission);
        }
    }
    // What a sampled replay shows was counted with its launch.
    if (track.kind == recording::TrackKind::captured_graph) {
        return;
    }
    for (const resolve::Sample& sample : batch.samples) {
        if (sample.kind != resolve::SampleKind::step && sample.kind != resolve::SampleKind::layer) {
            add(sample.name, sample.step, 1, track.sampled_every > 1);
        }
    }
}

CallCount CallCounter::judge(std::size_t index) const {
    CallCount count;
    std::uint64_t content_unknown = 0; // steps
    count.least = ~std::uint64_t{0};
    for (std::size_t i = 0; i < steps_->size(); ++i) {
        const resolve::Step& step = (*steps_)[i];
        if (step.phase != phase_) {
            continue;
        }
        ++count.steps;
        content_unknown += unknown_content_[i] ? 1 : 0;
        if (unknown_content_[i] || (bricks_[index].sometimes_timed && !step.device_timed)) {
            continue;
        }
        const std::uint64_t tokens = step.prefill_tokens + step.decode_tokens;
        const std::uint64_t wanted = expected_[index].count * (expected_[index].per_token ? tokens : 1);
        const std::uint64_t found = bricks_[index].calls[i];
        ++count.judged;
        count.total += found;
        count.least = std::min(count.least, found);
        count.most = std::max(count.most, found);
        count.too_many = count.too_many || found > wanted;
        if (found != wanted && count.differing++ == 0) {
            count.first_step = step.id;
            count.first_found = found;
            count.first_expected = wanted;
        }
    }
    if (count.steps == 0) {
        count.unknown = "the recording has no complete " + std::string(phase_word(phase_)) + " step";
    } else if (count.judged == 0) {
        count.unknown = content_unknown != 0
                            ? "captured graphs were replayed, and what is in them is not in the recording"
                            : "its queue is timed in some steps only, and in none of these";
    } else if (content_unknown != 0 && count.differing == 0) { // those that are known agree: the others may not
        count.unknown = "in " + std::to_string(content_unknown) + " of " + std::to_string(count.steps) +
                        " steps captured graphs were replayed whose content is not in the recording";
    }
    count.least = count.judged == 0 ? 0 : count.least;
    return count;
}

std::vector<CallCount> CallCounter::finish() const {
    std::vector<CallCount> counts;
    for (std::size_t i = 0; i < bricks_.size(); ++i) {
        counts.push_back(judge(i));
    }
    return counts;
}

} // namespace

Result<std::vector<CallCount>> count_calls(resolve::RecordSource& source, Phase phase,
                                           const std::vector<ExpectedCalls>& expected) {
    resolve::ResolveOptions options;
    options.warmup_steps = source.metadata().warmup_steps;
    CallCounter counter(source, phase, expected);
    const auto resolved = resolve::resolve(
        source, options,
        [&](const resolve::StepTable& steps, const resolve::TrackTable&) { counter.steps_known(steps); },
        [&](const resolve::ResolvedBatch& batch) { counter.consume(batch); });
    if (!resolved.ok()) {
        return resolved.error();
    }
    return counter.finish();
}

} // namespace plumb
