// SPDX-License-Identifier: Apache-2.0
// Everything `bench record` measures of one way to link the library: the executable itself, or a shared library.
// One thread calls it, once per process.
#pragma once

#include "record/subject.hpp"
#include "support/figures.hpp"

namespace bench {

struct PartOptions {
    unsigned rounds = 15;
    bool full = true; // false: only what a way to link can change (the loops with 1 and 2 threads)
};

/// False, with a sentence on stderr, when nothing can be recorded here.
[[nodiscard]] bool run_part(const Subject& subject, const PartOptions& options, Figures& figures);

/// main() of the programs that measure one part: --json FILE and --rounds N.
int part_main(int argc, char** argv, const Subject& subject);

inline constexpr std::uint64_t burst_scopes = 20000; // then everybody waits until the rings are drained
inline constexpr unsigned bursts_per_round = 5;
inline constexpr double sustained_seconds = 2.0;

} // namespace bench
