// SPDX-License-Identifier: Apache-2.0
// What the settings of a profiler mean to its recorder, and what a recording says of machine, process and settings.
// Functions without state; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "plumb/profiler.hpp"
#include "record/recorder_access.hpp"
#include "recording/recording.hpp"

namespace plumb::session {

[[nodiscard]] StampOptions stamps_for(const Config& config);

struct RingFilePath {
    std::string path;   // empty: there is none
    std::string reason; // why
};
/// Redacted where the settings want it. Measures what a scope costs here: takes milliseconds.
[[nodiscard]] recording::Metadata metadata_of(const Config& config, const std::uint64_t (&recording_id)[2],
                                              const RingFilePath& rings);

} // namespace plumb::session
