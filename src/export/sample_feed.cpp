// SPDX-License-Identifier: Apache-2.0
#include "export/sample_feed.hpp"

#include <algorithm>

namespace plumb::exporting {

SampleFeed samples_of(const recording::RecordedRun& run) {
    SampleFeed feed;
    feed.facts = run.facts;
    feed.for_each_step = [run](const StepTaker& take) {
        return resolve::for_each_step(run, take);
    };
    feed.for_each_batch = [run](const SampleTaker& take) {
        resolve::ResolveOptions options;
        options.warmup_steps = run.facts->metadata.warmup_steps;
        bool wanted = true;
        return resolve::resolve_samples(run, options,
                                        [&](const resolve::ResolvedBatch& batch) { wanted = wanted && take(batch); });
    };
    feed.for_each_check = run.for_each_check;
    return feed;
}

std::int64_t origin_of(const recording::RunFacts& facts) {
    const auto first = std::min_element(facts.clock_pairs.begin(), facts.clock_pairs.end(),
                                        [](const auto& a, const auto& b) { return a.monotonic_ns < b.monotonic_ns; });
    return first == facts.clock_pairs.end() ? 0 : first->monotonic_ns;
}

} // namespace plumb::exporting
