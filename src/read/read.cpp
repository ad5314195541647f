// SPDX-License-Identifier: Apache-2.0
#include "read/read.hpp"

#include <algorithm>

namespace plumb::read {
namespace {

resolve::FirstLook look_of(const std::vector<Observer*>& observers) {
    resolve::FirstLook look;
    look.wanted = [&observers](const recording::TrackInfo& track) {
        return std::any_of(observers.begin(), observers.end(),
                           [&](const Observer* observer) { return observer->looks_at(track); });
    };
    look.sink = [&observers](const resolve::ResolvedBatch& batch) {
        for (Observer* observer : observers) {
            if (observer->looks_at(batch.track->info)) {
                observer->look(batch);
            }
        }
    };
    return look;
}

} // namespace

Status read(const recording::RecordedRun& run, const std::vector<Observer*>& observers,
            const resolve::ResolveOptions& options) {
    const auto resolved = resolve::resolve(
        run, options,
        [&](const resolve::StepTable& steps, const resolve::TrackTable& tracks) {
            for (Observer* observer : observers) {
                observer->steps_known(steps, tracks);
            }
        },
        [&](const resolve::ResolvedBatch& batch) {
            for (Observer* observer : observers) {
                observer->consume(batch);
            }
        },
        look_of(observers));
    if (!resolved.ok()) {
        return resolved.error();
    }
    for (Observer* observer : observers) {
        observer->finish(*resolved);
    }
    return {};
}

Status read(const recording::RecordedRun& run, const std::vector<Observer*>& observers) {
    resolve::ResolveOptions options;
    options.warmup_steps = run.facts->metadata.warmup_steps;
    return read(run, observers, options);
}

} // namespace plumb::read
