// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "answers/findings/detect.hpp"

namespace plumb::findings {

void StepWatch::steps_known(const resolve::StepTable& steps, const resolve::TrackTable&) {
    table_ = &steps;
    steps_.reserve(steps.size());
    for (const resolve::ResolvedStep& step : steps.all()) {
        steps_.push_back({step.phase, step.warmup, step.counted && !step.warmup && !step.left_out, false,
                          static_cast<double>(step.end_ns - step.period_begin_ns), 0});
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

/// Between two stamps of the thread of a step: to the step that the later one lies in.
void StepWatch::read_cpu(const resolve::ResolvedBatch& batch) {
    for (const resolve::CpuStamp& stamp : batch.cpu_stamps) {
        const auto ends_before = [](const resolve::ResolvedStep& step, std::int64_t time) {
            return step.end_ns < time;
        };
        const resolve::Steps& all = table_->all();
        const auto from = all.begin() + static_cast<std::ptrdiff_t>(at_);
        const bool behind = at_ < all.size() && from->period_begin_ns <= stamp.time_ns;
        const auto found = std::lower_bound(behind ? from : all.begin(), all.end(), stamp.time_ns, ends_before);
        at_ = static_cast<std::size_t>(found - all.begin());
        const auto [last, first] = last_.try_emplace(batch.track_index, stamp);
        if (!first && found != all.end() && found->track == batch.track_index) {
            const std::int64_t off = stamp.time_ns - last->second.time_ns - (stamp.cpu_ns - last->second.cpu_ns);
            steps_[at_].off_cpu_ns += static_cast<double>(std::max<std::int64_t>(off, 0));
        }
        last->second = stamp;
    }
}

} // namespace plumb::findings
