// SPDX-License-Identifier: Apache-2.0
// All ranks on the clock of the first one, with the error. Exact where two ranks recorded one clock: the same boot and time namespace, or the
// same invariant counter of one boot. Else by causality, which needs no assumption but that clocks are lines: a blocking
// collective ends on no rank before the last began it, a receive not before its send. Offsets that PTP or NTP vouch for are
// bounds like these. What all bounds allow is the error; where they allow nothing the clocks contradict, and nothing is guessed.
// Pure; no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ranks/clock_band.hpp"
#include "ranks/job.hpp"
#include "ranks/joints.hpp"

namespace plumb::ranks {

enum class ClockSource : std::uint8_t {
    reference,    // the first rank's own
    same_clock,   // one boot, one time namespace
    same_counter, // one boot, one invariant counter
    bounds,       // causality, and what was given
    unknown,      // nothing bounds it on both sides
    contradicting // no line fits all bounds
};

/// The wall clock of a rank is ahead of the first rank's by so much, to within `error`; nanoseconds.
struct GivenOffset {
    std::optional<std::uint32_t> rank; // by number; nothing: every rank
    double ahead_ns = 0;
    double error_ns = 0;
};

/// From a rank's own clock to the job's.
class RankClock {
  public:
    ClockSource source = ClockSource::unknown;
    std::uint32_t domain = 0; // ranks of one domain have one clock
    std::int64_t at = 0;      // moment of the rank's own clock that the next two are counted from
    double offset = 0;        // what to add to have the domain's clock
    double drift = 0;
    ClockBand band; // from the domain's clock to the job's
    std::optional<ClockSpan>
        wall; // what the wall clocks say the whole correction is at the first and last moment, where the band allows it

    [[nodiscard]] bool found() const { return band.found(); }
    /// Moment of the rank's own clock -> of its domain's.
    [[nodiscard]] std::int64_t in_domain(std::int64_t moment) const;
    /// Moment of the rank's own clock -> of the job's, from least to most. REQUIRES: found().
    [[nodiscard]] ClockSpan in_job(std::int64_t moment) const;
    /// The likeliest moment of the job's clock, in so far as anything says: by the wall clocks, else the middle.
    [[nodiscard]] double estimate(std::int64_t moment) const;

    std::int64_t first = 0, last = 0; // what `wall` is of, of the rank's own clock
};

struct RankAlignment {
    std::vector<RankClock> clocks; // of each rank of the job
    std::uint32_t domains = 0;
    std::vector<std::string> contradictions; // one sentence each
    std::vector<std::string> notes;
};

/// Marks joints that cannot be: parts of one clock that contradict each other.
[[nodiscard]] RankAlignment align(const Job& job, Joints& joints, const std::vector<GivenOffset>& given = {});

} // namespace plumb::ranks
