// SPDX-License-Identifier: Apache-2.0
#include "recording/recorded_run.hpp"

#include <algorithm>

namespace plumb::recording {
namespace {

void subtract_named(const std::vector<std::pair<std::string, std::uint64_t>>& cleared,
                    std::vector<std::pair<std::string, std::uint64_t>>& from) {
    for (auto& [name, total] : from) {
        for (const auto& [cleared_name, cleared_total] : cleared) {
            total -= name == cleared_name ? std::min(total, cleared_total) : 0;
        }
    }
}

} // namespace

void subtract(const Counters& cleared, RunFacts& facts) {
    Counters& counters = facts.counters;
    subtract_named(cleared.drops, counters.drops);
    subtract_named(cleared.hardware, counters.hardware);
    counters.drain_cpu_ns -= std::min(counters.drain_cpu_ns, cleared.drain_cpu_ns);
    counters.records -= std::min(counters.records, cleared.records);
    counters.unresolved -= std::min(counters.unresolved, cleared.unresolved);
}

RecordedRun run_of(Reader reader) {
    const auto shared = std::make_shared<Reader>(std::move(reader));
    RecordedRun run;
    run.facts = shared->facts();
    run.ahead = shared->reads_ahead();
    run.for_each_batch = [shared](const std::function<bool(const RecordBatch&)>& take) {
        return shared->for_each_batch(take);
    };
    run.batches_of = [shared](const StepRanges& steps, std::uint64_t first_decode_steps) {
        return shared->batches_of(steps, first_decode_steps);
    };
    run.for_each_check = [shared](const std::function<bool(TensorCheck&&)>& take) {
        return shared->for_each_check(take);
    };
    return run;
}

Result<RecordedRun> open_run(const std::string& path, ReadOptions options) {
    Result<Reader> reader = Reader::open(path, options);
    return reader.ok() ? Result<RecordedRun>(run_of(std::move(*reader))) : reader.error();
}

} // namespace plumb::recording
