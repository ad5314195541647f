// SPDX-License-Identifier: Apache-2.0
// Where exporters get their data: the tables of a recording, and its samples as a stream that is never held as a whole.
// Owned by the caller; used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "recording/recording.hpp"
#include "resolve/node.hpp"
#include "resolve/sample.hpp"

namespace plumb::exporting {

/// Some consecutive samples of one track, and what it submitted to devices meanwhile.
struct SampleBatch {
    std::span<const resolve::Sample> samples;
    std::span<const resolve::Submission> submissions;
    std::span<const resolve::RecordedNode> nodes;
    std::span<const resolve::NodeDependency> dependencies;
    std::span<const resolve::Launch> launches; // Sample::launch is an index into them
};
/// False: no more are wanted, though more may still be given.
using SampleSink = std::function<bool(const SampleBatch&)>;
using TensorSink = std::function<bool(const recording::TensorCheck&)>;

class SampleSource {
  public:
    virtual ~SampleSource() = default;
    [[nodiscard]] virtual const recording::Metadata& metadata() const = 0;
    [[nodiscard]] virtual const std::vector<recording::TrackInfo>& tracks() const = 0;
    /// Well-known bricks need not be among them.
    [[nodiscard]] virtual const std::vector<recording::NameInfo>& names() const = 0;
    /// The last life-cycle row of each captured graph.
    [[nodiscard]] virtual const std::vector<recording::GraphInfo>& graphs() const = 0;
    /// What code hashes stand for.
    [[nodiscard]] virtual const std::vector<recording::KernelInfo>& kernels() const = 0;
    /// Losses and damage in plain words.
    [[nodiscard]] virtual const std::vector<std::string>& notes() const = 0;
    /// A moment of the common clock that no sample begins before: traces count from it, so that their numbers stay small.
    [[nodiscard]] virtual std::int64_t origin_ns() const = 0;
    /// Every sample once; those of a track in the order of their ends, spans excepted.
    virtual Status for_each_sample(const SampleSink& sink) = 0;
    /// Every check of a tensor once, in the order of the run as far as the recording keeps it.
    virtual Status for_each_check(const TensorSink& sink) = 0;
};

} // namespace plumb::exporting
