// SPDX-License-Identifier: Apache-2.0
#include "analysis/path_step.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "plumb/layout.hpp"

namespace plumb::analysis {
namespace {

resolve::ResolveOptions resolve_options(const resolve::RecordSource& source) {
    resolve::ResolveOptions options;
    options.warmup_steps = source.metadata().warmup_steps;
    return options;
}

bool runs_on_device(const resolve::RecordSource& source) {
    return std::any_of(source.tracks().begin(), source.tracks().end(), [](const recording::TrackInfo& track) {
        return track.kind != recording::TrackKind::host_thread;
    });
}

/// By index of a step: whether the time of device scopes in it is known.
Result<std::vector<bool>> device_timed_steps(resolve::RecordSource& source) {
    std::vector<bool> timed;
    const resolve::StepTable* steps = nullptr;
    const auto resolved = resolve::resolve(
        source, resolve_options(source),
        [&](const resolve::StepTable& table, const resolve::TrackTable&) {
            steps = &table;
            timed.assign(table.size(), false);
        },
        [&](const resolve::ResolvedBatch& batch) {
            if (batch.track->info.kind == recording::TrackKind::host_thread) {
                return;
            }
            std::uint64_t last = resolve::no_step;
            for (const resolve::Sample& sample : batch.samples) {
                if (sample.step == last) {
                    continue;
                }
                last = sample.step;
                if (const std::size_t found = steps->find(last); found != resolve::step_not_found) {
                    timed[found] = true;
                }
            }
        });
    if (!resolved.ok()) {
        return resolved.error();
    }
    return timed;
}

struct Choice {
    std::size_t index = resolve::step_not_found;
    std::uint64_t candidates = 0;
    bool only_timed = false;
};

/// The step of median length among those that `wanted` takes, the earlier of two.
template <class Wanted>
Choice median_of(const resolve::StepTable& steps, Wanted&& wanted) {
    std::vector<std::size_t> taken;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (!steps[i].warmup && wanted(i)) {
            taken.push_back(i);
        }
    }
    if (taken.empty()) {
        return {};
    }
    const auto middle = taken.begin() + static_cast<std::ptrdiff_t>((taken.size() - 1) / 2);
    std::nth_element(taken.begin(), middle, taken.end(), [&](std::size_t a, std::size_t b) {
        const std::int64_t of_a = steps[a].end_ns - steps[a].begin_ns, of_b = steps[b].end_ns - steps[b].begin_ns;
        return of_a != of_b ? of_a < of_b : a < b;
    });
    return {*middle, taken.size(), false};
}

/// Decode steps before others; where a device is timed in some steps only, those: the path runs through the device.
Choice choose(const resolve::StepTable& steps, const std::vector<bool>& timed) {
    for (const bool decode : {true, false}) {
        const auto of_phase = [&](std::size_t i) {
            return !decode || steps[i].phase == Phase::decode;
        };
        Choice choice = median_of(steps, [&](std::size_t i) { return of_phase(i) && !timed.empty() && timed[i]; });
        if (choice.candidates != 0) {
            const Choice all = median_of(steps, of_phase);
            choice.only_timed = all.candidates != choice.candidates;
            return choice;
        }
        choice = median_of(steps, [&](std::size_t i) { return of_phase(i) && !steps[i].left_out; });
        if (choice.candidates == 0) {
            choice = median_of(steps, of_phase);
        }
        if (choice.candidates != 0) {
            return choice;
        }
    }
    return {};
}

class Collector {
  public:
    Collector(const PathOptions& options, const std::vector<bool>& timed, bool devices)
        : options_(options), timed_(timed), devices_(devices) {}

    void choose_from(const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
        const Choice choice = options_.step ? Choice{steps.find(*options_.step), 0, false} : choose(steps, timed_);
        if (choice.index == resolve::step_not_found) {
            missing_ = reason(steps);
            return;
        }
        step.step = steps[choice.index];
        step.candidates = choice.candidates;
        step.only_timed = choice.only_timed;
        found_ = true;
        if (devices_) {
            presence_.emplace(steps, tracks, Interval{step.step.begin_ns, step.step.end_ns});
        }
    }

    void consume(const resolve::ResolvedBatch& batch) {
        if (!found_) {
            return;
        }
        if (presence_) {
            presence_->add(batch);
        }
        const std::size_t kept = step.samples.size();
        keep(batch.samples, step.samples);
        keep_launches(batch, kept);
        keep(batch.submissions, step.submissions);
        keep(batch.nodes, step.nodes);
        keep(batch.dependencies, step.dependencies);
    }

    void finish() {
        if (presence_) {
            step.away = presence_->take();
        }
    }

    [[nodiscard]] Status status() const {
        if (!found_) {
            return Error{ErrorCode::not_found, missing_};
        }
        if (too_many_) {
            return Error{ErrorCode::unsupported,
                         "step " + std::to_string(step.step.id) +
                             " holds more than 16777216 scopes; ask for another one with --step"};
        }
        return {};
    }

    PathStep step;

  private:
    template <class From, class To>
    void keep(const From& from, To& to) {
        for (const auto& one : from) {
            if (one.step != step.step.id) {
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
    void keep_launches(const resolve::ResolvedBatch& batch, std::size_t from) {
        for (std::size_t i = from; i < step.samples.size() && !batch.launches.empty(); ++i) {
            std::uint32_t& launch = step.samples[i].launch;
            if (launch != resolve::no_launch) {
                step.launches.push_back(batch.launches[launch]);
                launch = static_cast<std::uint32_t>(step.launches.size() - 1);
            }
        }
    }

    [[nodiscard]] std::string reason(const resolve::StepTable& steps) const {
        if (steps.empty()) {
            return "this recording holds no complete step; put PLUMB_STEP around each forward pass of the engine";
        }
        if (!options_.step) {
            return "all steps of this recording are warm-up; record a longer run, or name one with --step";
        }
        const auto [least, most] =
            std::minmax_element(steps.all().begin(), steps.all().end(),
                                [](const resolve::Step& a, const resolve::Step& b) { return a.id < b.id; });
        return "there is no complete step " + std::to_string(*options_.step) + " in this recording; its steps are " +
               std::to_string(least->id) + " to " + std::to_string(most->id);
    }

    const PathOptions& options_;
    const std::vector<bool>& timed_;
    bool devices_;
    std::optional<PathPresence> presence_; // a thread waits for nothing where nothing runs beside it
    std::string missing_ = "this recording holds no complete step";
    bool found_ = false;
    bool too_many_ = false;
};

} // namespace

Result<PathStep> collect_step(resolve::RecordSource& source, const PathOptions& options) {
    std::vector<bool> timed;
    const bool devices = runs_on_device(source);
    if (!options.step && devices) {
        auto found = device_timed_steps(source);
        if (!found.ok()) {
            return found.error();
        }
        timed = std::move(*found);
    }
    Collector collector(options, timed, devices);
    const auto resolved = resolve::resolve(
        source, resolve_options(source),
        [&](const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
            collector.choose_from(steps, tracks);
        },
        [&](const resolve::ResolvedBatch& batch) { collector.consume(batch); });
    if (!resolved.ok()) {
        return resolved.error();
    }
    collector.finish();
    if (const Status status = collector.status(); !status.ok()) {
        return status.error();
    }
    return std::move(collector.step);
}

} // namespace plumb::analysis
