// SPDX-License-Identifier: Apache-2.0
// One JSON line of every n-th replay of a key: host time of upload, launch and wait, and the device's own time between
// two events around that replay. Never waits: a line is written once its events are reached, at a later call or at the
// end. Owned by a cache. Thread rule: any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "cudagraph/guarded_driver.hpp"

namespace plumb::cudagraph {

/// One profiled replay; a negative time was not taken.
struct ReplaySample {
    std::uint64_t key = 0;
    std::uint64_t call = 0; // replays of that key so far, this one included
    std::int64_t upload_ns = -1;
    std::int64_t launch_ns = -1;
    std::int64_t sync_ns = -1;
    bool includes_launch_wait = false;
    std::string reason; // why there is no device time

    cuda::Event begin = nullptr;
    cuda::Event end = nullptr;
    cuda::Context context = nullptr;
};

class ReplayProfile {
  public:
    static constexpr std::size_t max_pending = 256;

    ReplayProfile(GuardedDriver& driver, std::uint64_t every, std::string path);
    ~ReplayProfile();
    ReplayProfile(const ReplayProfile&) = delete;
    ReplayProfile& operator=(const ReplayProfile&) = delete;

    [[nodiscard]] bool due(std::uint64_t call) const noexcept { return every_ != 0 && call % every_ == 0; }
    /// Before and after the launch, on its stream.
    ReplaySample begin(std::uint64_t key, std::uint64_t call, cuda::Stream stream);
    void end(ReplaySample& sample, cuda::Stream stream);
    /// Keeps the sample until its events are reached, and writes what is ready.
    void keep(ReplaySample sample);
    /// Gives a sample up whose launch failed.
    void drop(ReplaySample sample);
    /// Writes the lines whose events are reached; `last`: and the others, without device time.
    Status flush(bool last);
    void abandon();

  private:
    struct EventPair {
        cuda::Event begin;
        cuda::Event end;
        cuda::Context context;
    };
    Status take_events(ReplaySample& sample, cuda::Stream stream);
    void give_events(ReplaySample& sample);
    bool resolve(ReplaySample& sample, double& device_ns);
    Status write(const ReplaySample& sample, double device_ns);

    GuardedDriver& driver_;
    const std::uint64_t every_;
    const std::string path_;
    std::mutex writing_; // orders the lines; driver calls happen under it, launches never do
    std::ofstream file_;
    Status file_status_;
    std::mutex mutex_; // guards what follows; never held around a driver call
    std::deque<ReplaySample> pending_;
    std::vector<EventPair> pool_;
};

} // namespace plumb::cudagraph
