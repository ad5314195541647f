// SPDX-License-Identifier: Apache-2.0
#include "analysis/path_step.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "analysis/no_step.hpp"
#include "base/layout.hpp"

namespace plumb::analysis {
namespace {

struct Choice {
    std::size_t index = resolve::step_not_found;
    std::uint64_t candidates = 0;
    bool only_timed = false;
};

/// The step of median length, or the n-th slowest, among those that `wanted` takes, the earlier of two.
template <class Wanted>
Choice one_of(const resolve::StepTable& steps, std::size_t slowest, Wanted&& wanted) {
    std::vector<std::size_t> taken;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!steps[i].warmup && wanted(i)) {
            taken.push_back(i);
        }
    }
    if (taken.size() < std::max<std::size_t>(slowest, 1)) {
        return {};
    }
    const auto length_of = [&](std::size_t i) {
        return slowest == 0 ? steps[i].end_ns - steps[i].begin_ns : steps[i].period_begin_ns - steps[i].end_ns;
    };
    const auto chosen =
        taken.begin() + static_cast<std::ptrdiff_t>(slowest == 0 ? (taken.size() - 1) / 2 : slowest - 1);
    std::nth_element(taken.begin(), chosen, taken.end(), [&](std::size_t a, std::size_t b) {
        const std::int64_t of_a = length_of(a), of_b = length_of(b);
        return of_a != of_b ? of_a < of_b : a < b;
    });
    return {*chosen, taken.size(), false};
}

/// Decode steps before others; where a device is timed in some steps only, those: the path runs through the device.
Choice choose(const resolve::StepTable& steps, const std::vector<bool>& timed, std::size_t slowest,
              const std::optional<Phase>& phase) {
    for (const bool decode : {true, false}) {
        const auto of_phase = [&](std::size_t i) {
            return phase ? steps[i].phase == *phase : !decode || steps[i].phase == Phase::decode;
        };
        Choice choice =
            one_of(steps, slowest, [&](std::size_t i) { return of_phase(i) && !timed.empty() && timed[i]; });
        if (choice.candidates != 0) {
            const Choice all = one_of(steps, slowest, of_phase);
            choice.only_timed = all.candidates != choice.candidates;
            return choice;
        }
        choice = one_of(steps, slowest, [&](std::size_t i) { return of_phase(i) && !steps[i].left_out; });
        if (choice.candidates == 0) {
            choice = one_of(steps, slowest, of_phase);
        }
        if (choice.candidates != 0) {
            return choice;
        }
    }
    return {};
}

std::string reason(const resolve::StepTable& steps, const std::optional<std::uint64_t>& asked) {
    if (steps.empty()) {
        return no_step(steps);
    }
    if (!asked) {
        return "all steps of this recording are warm-up; record a longer run, or name one with --step";
    }
    const auto [least, most] =
        std::minmax_element(steps.all().begin(), steps.all().end(),
                            [](const resolve::ResolvedStep& a, const resolve::ResolvedStep& b) { return a.id < b.id; });
    return "there is no complete step " + std::to_string(*asked) + " in this recording; its steps are " +
           std::to_string(least->id) + " to " + std::to_string(most->id);
}

} // namespace

StepCollector::StepCollector(const recording::RunFacts& facts, const std::optional<std::uint64_t>& step,
                             std::uint32_t slowest, const std::optional<Phase>& phase)
    : asked_(step), slowest_(slowest), phase_(phase),
      devices_(std::any_of(facts.tracks.begin(), facts.tracks.end(),
                           [](const auto& track) { return track.kind != recording::TrackKind::host_thread; })) {}

bool StepCollector::looks_at(const recording::TrackInfo& track) const {
    return !asked_ && devices_ && track.kind != recording::TrackKind::host_thread;
}

void StepCollector::look(const resolve::ResolvedBatch& batch) {
    for (const resolve::Sample& sample : batch.samples) {
        device_timed_.add(sample.step);
    }
}

void StepCollector::steps_known(const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
    std::vector<bool> timed; // by index of a step: whether the time of device scopes in it is known
    if (!asked_ && devices_) {
        timed.assign(steps.size(), false);
        for (const std::uint64_t id : device_timed_.sorted()) {
            if (const std::size_t found = steps.find(id); found != resolve::step_not_found) {
                timed[found] = true;
            }
        }
    }
    const Choice choice = asked_ ? Choice{steps.find(*asked_), 0, false} : choose(steps, timed, slowest_, phase_);
    if (choice.index == resolve::step_not_found) {
        missing_ = reason(steps, asked_);
        return;
    }
    step_.step = steps[choice.index];
    step_.candidates = choice.candidates;
    step_.only_timed = choice.only_timed;
    found_ = true;
    find_steps_within(steps);
    std::size_t threads = 0;
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        threads += tracks[i].info.kind == recording::TrackKind::host_thread ? 1 : 0;
    }
    if (devices_ || threads > 1) {
        presence_.emplace(steps, tracks, Interval{step_.step.begin_ns, step_.step.end_ns});
    }
}

void StepCollector::find_steps_within(const resolve::StepTable& steps) {
    const resolve::ResolvedStep& outer = step_.step;
    for (const resolve::ResolvedStep& inner : steps.all()) {
        if (inner.track == outer.track && inner.id != outer.id && inner.begin_ns >= outer.begin_ns &&
            inner.host_end_ns <= outer.host_end_ns) {
            within_.push_back(inner.id);
        }
    }
    std::sort(within_.begin(), within_.end());
}

bool StepCollector::is_kept(std::uint64_t step) const {
    return step == step_.step.id || (!within_.empty() && std::binary_search(within_.begin(), within_.end(), step));
}

template <class From, class To>
void StepCollector::keep(const From& from, To& to) {
    for (const auto& one : from) {
        if (!is_kept(one.step)) {
            continue;
        }
        if (to.size() >= PathStep::most_samples) {
            too_many_ = true;
        } else {
            to.push_back(one);
        }
    }
}

/// Of the samples from that one on.
void StepCollector::keep_launches(const resolve::ResolvedBatch& batch, std::size_t from) {
    for (std::size_t i = from; i < step_.samples.size() && !batch.launches.empty(); ++i) {
        std::uint32_t& launch = step_.samples[i].launch;
        if (launch != resolve::no_launch) {
            step_.launches.push_back(batch.launches[launch]);
            launch = static_cast<std::uint32_t>(step_.launches.size() - 1);
        }
    }
}

void StepCollector::consume(const resolve::ResolvedBatch& batch) {
    if (!found_) {
        return;
    }
    if (presence_) {
        presence_->add(batch);
    }
    const std::size_t kept = step_.samples.size();
    keep(batch.samples, step_.samples);
    keep_launches(batch, kept);
    keep(batch.submissions, step_.submissions);
    keep(batch.nodes, step_.nodes);
    keep(batch.dependencies, step_.dependencies);
}

void StepCollector::finish(const resolve::Resolution&) {
    if (presence_) {
        step_.away = presence_->take();
        presence_.reset();
    }
}

Status StepCollector::status() const {
    if (!found_) {
        return Error{ErrorCode::not_found, missing_};
    }
    if (too_many_) {
        return Error{ErrorCode::unsupported, "step " + std::to_string(step_.step.id) +
                                                 " holds more than 16777216 scopes; ask for another one with --step"};
    }
    return {};
}

} // namespace plumb::analysis
