// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "answers/findings/detect.hpp"

namespace plumb::findings {

void StepWatch::steps_known(const resolve::StepTable& steps, const resolve::TrackTable&) {
    table_ = &steps;
    steps_.reserve(steps.size());
    for (const resolve::ResolvedStep& step : steps.all()) {
        by_track_[step.track].first.push_back(static_cast<std::uint32_t>(steps_.size()));
        steps_.push_back({step.phase, step.warmup, step.counted && !step.warmup && !step.left_out, false,
                          static_cast<double>(step.end_ns - step.period_begin_ns), 0, step.prefill_tokens,
                          step.decode_tokens});
    }
}

void StepWatch::consume(const resolve::ResolvedBatch& batch) {
    read_cpu(batch);
    for (const resolve::Submission& submission : batch.submissions) {
        if (!submission.graph || submission.step == resolve::no_step) {
            continue;
        }
        if (const std::size_t index = table_->find(submission.step); index != resolve::step_not_found) {
            steps_[index].replayed = true;
        }
    }
}

/// Between two stamps of the thread of steps it was off the CPU for so long. When is not known: the longest step there is
/// given as much of it as it has room for, then the next one, so that no more is left of any than it surely took.
void StepWatch::read_cpu(const resolve::ResolvedBatch& batch) {
    const auto of_track = by_track_.find(static_cast<std::uint32_t>(batch.track_index));
    if (of_track == by_track_.end()) {
        return;
    }
    auto& [indices, at] = of_track->second;
    const resolve::Steps& all = table_->all();
    for (const resolve::CpuStamp& stamp : batch.cpu_stamps) {
        const auto [last, first] = last_.try_emplace(batch.track_index, stamp);
        const resolve::CpuStamp before = last->second;
        last->second = stamp;
        auto off = static_cast<double>(stamp.time_ns - before.time_ns - (stamp.cpu_ns - before.cpu_ns));
        if (first || stamp.time_ns <= before.time_ns || !(off > 0)) {
            continue;
        }
        while (at < indices.size() && all[indices[at]].end_ns <= before.time_ns) {
            ++at;
        }
        std::vector<std::pair<double, std::uint32_t>> parts; // of the time between, by step
        for (std::size_t i = at; i < indices.size() && all[indices[i]].period_begin_ns < stamp.time_ns; ++i) {
            const resolve::ResolvedStep& step = all[indices[i]];
            parts.emplace_back(static_cast<double>(std::min(step.end_ns, stamp.time_ns) -
                                                   std::max(step.period_begin_ns, before.time_ns)),
                               indices[i]);
        }
        std::sort(parts.begin(), parts.end(), std::greater<>());
        for (const auto& [part, index] : parts) {
            const double given = std::clamp(off, 0.0, std::max(part, 0.0));
            steps_[index].off_cpu_ns += given;
            off -= given;
        }
    }
}

} // namespace plumb::findings
