// SPDX-License-Identifier: Apache-2.0
// A trace as a recording: what a profiled run of the same work would have left. One process of the trace is one recording.
// Plain function; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "import/labels.hpp"
#include "import/steps.hpp"
#include "import/trace.hpp"
#include "plumb/result.hpp"

namespace plumb::imported {

struct WriteOptions {
    std::string path;
    std::uint16_t process = 0;
    std::vector<std::pair<std::string, std::string>> descriptions;
    const std::atomic<bool>* stop = nullptr; // set: an error
};

/// After an error there is no recording.

Status write_recording(const Trace& trace, const EngineSteps& steps, const Labels& labels, const WriteOptions& options);

} // namespace plumb::imported
