// SPDX-License-Identifier: Apache-2.0
// Any set of answers from one reading of a run: at most two passes over its records, however many observers there are.
// Pure: the same run gives the same answers. One thread; observers are called on it, in the order given.
#pragma once

#include <vector>

#include "plumb/result.hpp"
#include "recording/recorded_run.hpp"
#include "resolve/resolve.hpp"

namespace plumb::read {

/// Collects one answer, or a part of several. Owned by the caller of read(). It keeps nothing of a batch but what it copies.
class Observer {
  public:
    virtual ~Observer() = default;
    Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    /// Whether it has to see what is on this track before the steps are known. That costs a second resolution of the track.
    [[nodiscard]] virtual bool looks_at(const recording::TrackInfo&) const { return false; }
    /// In the first pass. What only complete steps tell is not known yet: phase, warm-up, length of the KV cache.
    virtual void look(const resolve::ResolvedBatch&) {}
    /// Between the passes. What it is given lives until finish() has returned.
    virtual void steps_known(const resolve::StepTable&, const resolve::TrackTable&) {}
    /// In the second pass.
    virtual void consume(const resolve::ResolvedBatch&) {}
    virtual void finish(const resolve::Resolution&) {}
};

/// Errors: those of the run's stream; then no observer was finished.
[[nodiscard]] Status read(const recording::RecordedRun& run, const std::vector<Observer*>& observers,
                          const resolve::ResolveOptions& options);
/// With as many steps of warm-up as the run itself asked for.
[[nodiscard]] Status read(const recording::RecordedRun& run, const std::vector<Observer*>& observers);

} // namespace plumb::read
