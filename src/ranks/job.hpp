// SPDX-License-Identifier: Apache-2.0
// The ranks of one job, by number, as their recordings say who they are; which are missing; and who works with whom in which group. Plain
// values; no thread rule.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plumb/result.hpp"
#include "ranks/rank_events.hpp"
#include "recording/recording.hpp"

namespace plumb::ranks {

struct Rank {
    std::string path;
    std::string trace; // the file that it was imported from; "": it was not
    std::uint32_t number = 0;
    recording::Metadata metadata;
    std::vector<recording::ClockPair> clock_pairs; // of the host's clock: the first and the last one
    std::int64_t origin_ns = 0;                    // the first moment of all clock pairs: traces count from it
    std::vector<std::string> losses;               // what its recording says of itself
    RankEvents events;
};

/// Of two ranks between which a KV cache goes it is the one that sends: it runs prefill steps and no others.
[[nodiscard]] inline bool sends_alone(const Rank& rank) {
    return rank.events.steps != 0 && rank.events.prefill_steps == rank.events.steps;
}

/// The boot and time namespace whose clock it recorded; "": not known.
[[nodiscard]] std::string shared_clock(const Rank& rank);

struct Job {
    std::vector<Rank> ranks; // by number
    std::uint64_t world = 0; // how many there should be; 0: no recording says it
    bool numbered = false;   // no recording says its rank: they have numbers by their names
    std::vector<std::string> notes;
};

/// Numbers as the recordings say them; where none says any, in the natural order of their paths. Who is of another job is left out, with a note.
/// Error invalid_argument: two recordings of one rank, or fewer than two ranks.
[[nodiscard]] Result<Job> assemble(std::vector<Rank> ranks);

/// Who is in which instance of a group: 8 ranks with "tp" of 4 make two of them.
struct Instances {
    static constexpr int none = -1;
    std::vector<int> of;    // of each rank, by its place in Job::ranks
    std::vector<int> index; // in it
    std::vector<int> sizes; // of each instance, missing ranks included
};

/// Of every group that metadata names, and of "", all ranks. A group whose members cannot be told is left out, with a note.
[[nodiscard]] std::map<std::string, Instances> instances_of(const Job& job, std::vector<std::string>& notes);

} // namespace plumb::ranks
