// SPDX-License-Identifier: Apache-2.0
// Who follows a recording while it is written: told of each thing after the writer took it in, once, in the order of the file.
// Owned by whoever gave it to the writer, and outlives that. Thread rule: called on the thread that writes, between two writes: it
// must not wait, and must not call the writer.
#pragma once

#include <string_view>

#include "recording/recording.hpp"

namespace plumb::recording {

class RecordingObserver {
  public:
    virtual ~RecordingObserver() = default;
    /// A track comes before its records, a name before what bears it.
    virtual void saw(const TrackInfo& track) = 0;
    virtual void saw(const NameInfo& name) = 0;
    virtual void saw(const ClockPair& pair) = 0;
    virtual void saw(const RecordBatch& batch) = 0;
    virtual void saw(const Counters& counters) = 0;
    virtual void saw(const GraphInfo& row) = 0;
    virtual void described(std::string_view key, std::string_view value) = 0;
};

} // namespace plumb::recording
