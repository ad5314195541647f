// SPDX-License-Identifier: Apache-2.0
// The room's door: traces of other tools become recordings, one for each process. Plain function; any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/result.hpp"

namespace plumb::imported {

struct ImportOptions {
    std::string out; // where one trace gives several recordings, or there are several: -0, -1 … before its extension
    std::optional<Phase> phase;
    std::optional<std::uint64_t> tokens; // of each step
    std::vector<std::string> rules;      // files of rules before plumb's own
    std::uint32_t layers = 0;            // what the model has; 0: not known
    std::string config;                  // the model's config.json, which says so too
    std::vector<std::string> evidence;   // that may be used: annotation, stack, capture, name, place; empty: all
    std::vector<std::string> captures;   // traces of the captures of graphs
    std::uint64_t max_size = std::uint64_t{64} << 30; // of a trace, unpacked
    const std::atomic<bool>* stop = nullptr;     // set: the import ends with an error, and keeps nothing of this trace
    std::atomic<std::uint64_t>* bytes = nullptr; // of traces, read so far
    std::vector<std::string>* skipped = nullptr; // takes a sentence on each file of a folder that is no trace
};

/// One recording that was made.
struct ImportedRun {
    std::string trace, recording;
    std::string tool; // "kineto"
    std::uint64_t operations = 0, steps = 0;
    double operations_ns = 0;       // their sum
    std::vector<std::string> notes; // what the reader must know of the trace
};

/// Files, or folders of them. What is no trace is an error where it was named, and skipped in a folder that holds others. Errors:
/// those of the first trace that cannot be read; recordings made before it stay, and no other.
Result<std::vector<ImportedRun>> import_traces(const std::vector<std::string>& paths, const ImportOptions& options);

} // namespace plumb::imported
