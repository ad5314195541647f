// SPDX-License-Identifier: Apache-2.0
// Writes what a window of CUPTI saw: each kernel on the lane of its stream, under the brick that the kernel rules know it by, and a
// mark for each step that was slowed. Never destroyed, nor is a lane: the profiler reads it until it is closed.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attach/cupti/window.hpp"
#include "attach/told_lane.hpp"
#include "backends/cuda/cupti.hpp"
#include "plumb/profiler.hpp"

namespace plumb::attach::cupti {

class KernelWriter {
  public:
    explicit KernelWriter(Profiler& profiler) : profiler_(profiler) {}
    KernelWriter(const KernelWriter&) = delete;
    KernelWriter& operator=(const KernelWriter&) = delete;

    /// `content` is that of these kernels. Returns how many were written; the others found no lane.
    std::uint64_t write(const std::vector<backends::cuda::TracedKernel>& kernels, const WindowKernels& content);

  private:
    struct Called {
        Name name;
        std::uint32_t layer_plus_one;
    };
    struct StreamLane {
        std::unique_ptr<ToldLane> timer;
        Queue queue;
    };
    struct PlacedKernel {
        std::uint32_t kernel;
        std::uint32_t flags; // of a DeviceSpan
        Context place;
        Name name;
    };

    /// Valid until the next call.
    const std::vector<Called>& names_of(const KernelSequence& sequence,
                                        const std::vector<backends::cuda::TracedKernel>& kernels);
    std::vector<PlacedKernel> in_order(const std::vector<backends::cuda::TracedKernel>& kernels,
                                       const std::vector<KernelSequence>& sequences);
    StreamLane* lane_of(const backends::cuda::TracedKernel& kernel);
    detail::ThreadRecorder* pen_with_room();
    void mark(const std::vector<std::uint64_t>& slowed);

    Profiler& profiler_;
    bool full_ = false; // there was no room in this call of write()
    std::unordered_map<std::string, std::uint32_t> name_numbers_;
    std::map<std::vector<std::uint64_t>, std::vector<Called>> known_;     // by names and lanes of a sequence
    std::size_t known_kernels_ = 0;                                       // asked for since nothing was known
    std::map<std::pair<std::uint32_t, std::uint32_t>, StreamLane> lanes_; // by device and stream
};

} // namespace plumb::attach::cupti
