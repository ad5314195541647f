// SPDX-License-Identifier: Apache-2.0
// Where raw records come from, as the resolver sees it: a recording on disk or in memory, or a stream planted by a test.
// Owned by the caller; used by one thread at a time. REQUIRES: for_each_batch delivers the same batches in the same
// order each time it is called, each track's batches in sequence order.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "plumb/result.hpp"
#include "recording/recording.hpp"

namespace plumb::resolve {

class RecordSource {
  public:
    virtual ~RecordSource() = default;
    [[nodiscard]] virtual const recording::Metadata& metadata() const = 0;
    [[nodiscard]] virtual const std::vector<recording::TrackInfo>& tracks() const = 0;
    [[nodiscard]] virtual const std::vector<recording::NameInfo>& names() const = 0;
    [[nodiscard]] virtual const std::vector<recording::ClockPair>& clock_pairs() const = 0;
    [[nodiscard]] virtual const recording::Counters& counters() const = 0;
    [[nodiscard]] virtual const std::vector<std::pair<std::string, std::string>>& descriptions() const = 0;
    /// The last life-cycle row of each captured graph.
    [[nodiscard]] virtual const std::vector<recording::GraphInfo>& graphs() const = 0;
    /// What code hashes stand for.
    [[nodiscard]] virtual const std::vector<recording::KernelInfo>& kernels() const = 0;
    /// Damage and losses met while reading, one sentence each.
    [[nodiscard]] virtual const std::vector<std::string>& notes() const = 0;
    /// Stops early, without error, when the visitor returns false.
    virtual Status for_each_batch(const std::function<bool(const recording::RecordBatch&)>& visit) = 0;
};

} // namespace plumb::resolve
