// SPDX-License-Identifier: Apache-2.0
// Everything a recording says of its run but the records and the checks themselves. Plain data; no thread rule of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "recording/recording.hpp"

namespace plumb::recording {

struct RunFacts {
    Metadata metadata;
    std::vector<TrackInfo> tracks; // in order of first appearance; those known only from a dead writer's ring last
    std::vector<NameInfo> names;   // well-known bricks need not be among them
    std::vector<ClockPair> clock_pairs;
    Counters counters;
    std::vector<std::pair<std::string, std::string>> descriptions; // the last value of each key
    std::vector<GraphInfo> graphs; // the last row of each captured graph, in order of first appearance
    std::vector<KernelInfo>
        kernels; // what code hashes stand for; several kernels may have one, notes tell of those that should not
    std::vector<TileTotals> tiles;     // since the last reset(), by level, name, row and column
    std::vector<OffCpuSample> off_cpu; // in the order written; thinned out where there are very many
    /// Losses and damage in plain words, with counts. Reading the records may add to them.
    std::vector<std::string> notes;
    std::uint64_t records = 0;           // that there are to read
    std::uint64_t unindexed_records = 0; // of those, in chunks that do not say which steps they hold, and in rings
    bool closed = false;                 // the writer ended in good order
    bool being_written = false;          // the writer was still alive when the recording was opened
};

/// Less the losses and costs that a live run had when reset() cleared them.
void subtract(const Counters& cleared, RunFacts& facts);

} // namespace plumb::recording
