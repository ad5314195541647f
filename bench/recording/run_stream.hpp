// SPDX-License-Identifier: Apache-2.0
// A real run, recorded here and now, and the same run again and again with its times moved on, as long as anybody wants.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plumb/layout.hpp"
#include "recording/recording.hpp"
#include "recording/writer.hpp"

namespace bench {

inline constexpr std::size_t batch_records = 16384; // what the drain hands over: a quarter of a ring

/// A decode-like run of this program under the profiler; what close() took, in seconds.
double record_run(const std::string& path);

/// What a recording holds, ready to be written again.
struct Run {
    plumb::recording::Metadata metadata;
    std::vector<plumb::recording::TrackInfo> tracks;
    std::vector<plumb::recording::NameInfo> names;
    std::vector<plumb::recording::ClockPair> pairs;
    std::vector<plumb::detail::Record> records; // of the busiest track
    std::uint32_t track = 0;
    std::uint64_t span = 0;  // ticks from the first to the last
    std::uint64_t steps = 0; // ids used
};
[[nodiscard]] Run read_run(const std::string& path);

[[nodiscard]] double count_scopes(const std::vector<plumb::detail::Record>& records);

class Repeater {
  public:
    explicit Repeater(const Run& run) : run_(run) {}
    /// The next `count` records, appended.
    void next(std::vector<plumb::detail::Record>& to, std::size_t count);

  private:
    const Run& run_;
    std::size_t at_ = 0;
    std::uint64_t turn_ = 0;
};

/// A writer that holds everything but the records.
[[nodiscard]] std::unique_ptr<plumb::recording::Writer> begin_recording(const Run& run, const std::string& path,
                                                                        bool compress);

/// `turns` times the run, into a recording, without ever holding more than a batch; the scopes in it.
double write_long_recording(const Run& run, const std::string& path, std::uint64_t turns);

} // namespace bench
