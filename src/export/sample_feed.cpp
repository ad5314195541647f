// SPDX-License-Identifier: Apache-2.0
#include "export/sample_feed.hpp"

#include <algorithm>

namespace plumb::exporting {

SampleFeed samples_of(const recording::RecordedRun& run) {
    SampleFeed feed;
    feed.facts = run.facts;
    feed.for_each_batch = [run](const SampleTaker& take) {
        resolve::ResolveOptions options;
        options.warmup_steps = run.facts->metadata.warmup_steps;
        bool wanted = true;
        return resolve::resolve_samples(run, options,
                                        [&](const resolve::ResolvedBatch& batch) { wanted = wanted && take(batch); });
    };
    feed.for_each_check = run.for_each_check;
    feed.for_each_step = [run](const StepTaker& take) -> Status {
        resolve::TrackTable tracks(*run.facts, {});
        resolve::Losses losses;
        const Result<resolve::FirstPass> pass =
            resolve::scan_steps(run, tracks, run.facts->metadata.warmup_steps, losses);
        if (!pass) {
            return pass.error();
        }
        for (const resolve::ResolvedStep& step : pass->steps.all()) {
            if (!take(step, tracks[step.track].info.id)) {
                break;
            }
        }
        return {};
    };
    return feed;
}

std::int64_t origin_of(const recording::RunFacts& facts) {
    const auto first = std::min_element(facts.clock_pairs.begin(), facts.clock_pairs.end(),
                                        [](const auto& a, const auto& b) { return a.monotonic_ns < b.monotonic_ns; });
    return first == facts.clock_pairs.end() ? 0 : first->monotonic_ns;
}

} // namespace plumb::exporting
