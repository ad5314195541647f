// SPDX-License-Identifier: Apache-2.0
// A run to be read: its facts, and its records and checks as streams that are never held as a whole. Made from a recording, or
// by a test from what it planted. Copies share what is behind them; one thread at a time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "plumb/result.hpp"
#include "recording/reader.hpp"
#include "recording/run_facts.hpp"
#include "recording/step_ranges.hpp"

namespace plumb::recording {

/// Both stop early, without error, when `take` returns false, and give the same each time they are called.
using BatchStream = std::function<Status(const std::function<bool(const RecordBatch&)>& take)>;
using CheckStream = std::function<Status(const std::function<bool(TensorCheck&&)>& take)>;

struct RecordedRun {
    std::shared_ptr<RunFacts> facts = std::make_shared<RunFacts>();
    BatchStream for_each_batch; // each track's batches in sequence order
    CheckStream for_each_check; // in the order written
    /// What for_each_batch gives of these steps and of the first decode steps, as many as asked for. A track's batches are
    /// consecutive but where one begins anew. nullopt, and without such a function: for_each_batch gives no more than that takes.
    std::function<std::optional<BatchStream>(const StepRanges& steps, std::uint64_t first_decode_steps)> batches_of;
    bool ahead = false; // whether who reads it should use a thread of its own (ReadAhead)
};

/// Errors: as Reader::open().
[[nodiscard]] Result<RecordedRun> open_run(const std::string& path, ReadOptions options = {});
[[nodiscard]] RecordedRun run_of(Reader reader);

} // namespace plumb::recording
