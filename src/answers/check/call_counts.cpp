// SPDX-License-Identifier: Apache-2.0
#include "answers/check/call_counts.hpp"

#include <algorithm>

#include "analysis/brick_words.hpp"

namespace plumb {

CallReader::CallReader(const recording::RunFacts& facts, Phase phase, const std::vector<ExpectedCalls>& expected)
    : phase_(phase), expected_(expected), names_(facts.names), bricks_(std::min(expected.size(), max_expected_calls)) {
    for (const recording::GraphInfo& graph : facts.graphs) {
        graphs_.emplace(graph.key, &graph);
    }
}

void CallReader::steps_known(const resolve::StepTable& steps, const resolve::TrackTable&) {
    steps_ = &steps;
    for (BrickCalls& brick : bricks_) {
        brick.calls.resize(steps.size());
    }
    unknown_content_.resize(steps.size());
}

std::uint64_t CallReader::asked(std::uint16_t name) {
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

void CallReader::add(std::uint16_t name, std::uint64_t step, std::uint32_t calls, bool sometimes_timed) {
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

void CallReader::launched(const resolve::Submission& launch) {
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

void CallReader::consume(const resolve::ResolvedBatch& batch) {
    const recording::TrackInfo& track = batch.track->info;
    for (const resolve::Submission& submission : batch.submissions) {
        if (submission.graph && !submission.linked()) {
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

CallCount CallReader::judge(std::size_t index) const {
    CallCount count;
    std::uint64_t content_unknown = 0; // steps
    std::uint64_t without_tokens = 0;
    count.least = ~std::uint64_t{0};
    for (std::size_t i = 0; i < steps_->size(); ++i) {
        const resolve::ResolvedStep& step = (*steps_)[i];
        if (step.phase != phase_) {
            continue;
        }
        ++count.steps;
        content_unknown += unknown_content_[i] ? 1 : 0;
        if (unknown_content_[i] || (bricks_[index].sometimes_timed && !step.device_timed)) {
            continue;
        }
        const std::uint64_t tokens = step.prefill_tokens + step.decode_tokens;
        if (expected_[index].per_token && tokens == 0) {
            ++without_tokens;
            continue;
        }
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
    } else if (without_tokens != 0 && count.differing == 0) {
        count.unknown = std::to_string(without_tokens) + " of " + std::to_string(count.steps) +
                        " steps carry no tokens (plumb::tokens(n) gives them)";
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

void CallReader::finish(const resolve::Resolution&) {
    for (std::size_t i = 0; i < bricks_.size(); ++i) {
        counts_.push_back(judge(i));
    }
}

Result<std::vector<CallCount>> count_calls(const recording::RecordedRun& run, Phase phase,
                                           const std::vector<ExpectedCalls>& expected) {
    CallReader reader(*run.facts, phase, expected);
    if (Status read = read::read(run, {&reader}); !read.ok()) {
        return read.error();
    }
    return reader.take();
}

} // namespace plumb
