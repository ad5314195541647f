// SPDX-License-Identifier: Apache-2.0
#include "recording/clock_stretches.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace plumb::recording {
namespace {

// Ten times what time services correct a clock by; far less than a jump is of the second between two pairs.
constexpr double most_drift = 0.005;
// The brackets of host pairs are ours; what a driver pairs may be coarser than it says.
constexpr double finest_host_jump_ns = 1e5;
constexpr double finest_device_jump_ns = 1e6;

bool at_one_tick(const std::vector<ClockPair>& pairs) {
    return std::all_of(pairs.begin(), pairs.end(),
                       [&](const ClockPair& pair) { return pair.ticks == pairs.front().ticks; });
}

// A pair read across an interrupt has a bracket far wider than the others and says little about the line. It says all there
// is where the others are one and the same, as those of a device that was too busy to be asked again.
std::vector<ClockPair> trustworthy(std::vector<ClockPair> pairs) {
    if (pairs.empty()) {
        return pairs;
    }
    std::vector<std::uint64_t> widths;
    widths.reserve(pairs.size());
    for (const ClockPair& pair : pairs) {
        widths.push_back(pair.uncertainty_ticks);
    }
    const auto middle = widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2);
    std::nth_element(widths.begin(), middle, widths.end());
    const std::uint64_t limit = *middle > std::numeric_limits<std::uint64_t>::max() / 8 ? *middle : 8 * *middle;
    std::vector<ClockPair> kept;
    std::copy_if(pairs.begin(), pairs.end(), std::back_inserter(kept),
                 [&](const ClockPair& pair) { return pair.uncertainty_ticks <= limit; });
    return at_one_tick(kept) ? pairs : kept;
}

/// From one pair to the next.
struct PairGap {
    double ticks;
    double ns;
    double bracket; // ticks that both readings may be off by

    PairGap(const ClockPair& from, const ClockPair& to)
        : ticks(static_cast<double>(static_cast<std::int64_t>(to.ticks - from.ticks))),
          ns(static_cast<double>(to.monotonic_ns) - static_cast<double>(from.monotonic_ns)),
          bracket(static_cast<double>(from.uncertainty_ticks) + static_cast<double>(to.uncertainty_ticks)) {}

    [[nodiscard]] bool tells_rate() const { return ns > 0 && ticks > 0 && bracket <= most_drift * ticks; }
    [[nodiscard]] double rate() const { return ns / ticks; }
    /// Nanoseconds that passed beyond those of the ticks.
    [[nodiscard]] double excess(double at_rate) const { return ns - at_rate * ticks; }
    [[nodiscard]] bool fits(double at_rate, double finest_jump) const {
        return std::fabs(excess(at_rate)) <= finest_jump + most_drift * std::fabs(ns) + at_rate * bracket;
    }
};

/// The rate of most of the time; nothing where no two gaps agree on one that holds for more than half of it.
std::optional<double> usual_rate(const std::vector<PairGap>& gaps) {
    std::vector<PairGap> telling;
    std::copy_if(gaps.begin(), gaps.end(), std::back_inserter(telling),
                 [](const PairGap& gap) { return gap.tells_rate(); });
    std::sort(telling.begin(), telling.end(), [](const PairGap& a, const PairGap& b) { return a.rate() < b.rate(); });
    double time = 0;
    for (const PairGap& gap : telling) {
        time += gap.ns;
    }
    double before = 0;
    double rate = 0;
    for (const PairGap& gap : telling) {
        rate = gap.rate();
        before += gap.ns;
        if (before >= time / 2) {
            break;
        }
    }
    double agreed = 0;
    std::size_t agreeing = 0;
    for (const PairGap& gap : telling) {
        if (std::fabs(gap.rate() - rate) <= 2 * most_drift * rate) {
            agreed += gap.ns;
            ++agreeing;
        }
    }
    return agreeing >= 2 && agreed > time / 2 ? std::optional(rate) : std::nullopt;
}

/// Whether the pairs can be those of one line, as far as one can tell.
bool one_line(const std::vector<PairGap>& gaps, double finest_jump) {
    const auto longest = std::max_element(gaps.begin(), gaps.end(), [](const PairGap& a, const PairGap& b) {
        return (a.tells_rate() ? a.ns : 0) < (b.tells_rate() ? b.ns : 0);
    });
    if (longest == gaps.end() || !longest->tells_rate()) {
        return true;
    }
    return std::all_of(gaps.begin(), gaps.end(),
                       [&](const PairGap& gap) { return gap.fits(longest->rate(), finest_jump); });
}

std::string seconds(const ClockPair& pair, const ClockPair& first) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f",
                  1e-9 * (static_cast<double>(pair.monotonic_ns) - static_cast<double>(first.monotonic_ns)));
    return text;
}

} // namespace

ClockStretches stretches_of(const std::vector<ClockPair>& all, std::uint32_t clock) {
    std::vector<ClockPair> pairs;
    std::copy_if(all.begin(), all.end(), std::back_inserter(pairs),
                 [clock](const ClockPair& pair) { return pair.clock == clock; });
    pairs = trustworthy(std::move(pairs));
    std::stable_sort(pairs.begin(), pairs.end(), [](const ClockPair& a, const ClockPair& b) {
        return a.monotonic_ns != b.monotonic_ns ? a.monotonic_ns < b.monotonic_ns : a.ticks < b.ticks;
    });
    std::vector<PairGap> gaps;
    for (std::size_t i = 1; i < pairs.size(); ++i) {
        gaps.emplace_back(pairs[i - 1], pairs[i]);
    }
    const double finest_jump = clock == 0 ? finest_host_jump_ns : finest_device_jump_ns;
    ClockStretches made;
    const std::optional<double> rate = usual_rate(gaps);
    if (rate ? std::all_of(gaps.begin(), gaps.end(), [&](const PairGap& gap) { return gap.fits(*rate, finest_jump); })
             : one_line(gaps, finest_jump)) {
        made.all.push_back({std::move(pairs)});
        return made;
    }

    made.jumped = "Clock " + std::to_string(clock) + " jumped against the system's clock";
    const char* const why = ", as when a machine is suspended, a virtual machine paused, or a counter set back";
    const char* const advice = "; record again where none of that happens.";
    if (!rate || std::any_of(gaps.begin(), gaps.end(),
                             [&](const PairGap& gap) { return gap.ticks < 0 && !gap.fits(*rate, finest_jump); })) {
        made.jumped += std::string(why) + ", so its records have no time" + advice;
        return made;
    }
    ClockStretch open{{pairs.front()}};
    std::size_t jumps = 0;
    const auto close = [&](ClockStretch&& stretch) {
        if (stretch.pairs.size() >= 2 && !at_one_tick(stretch.pairs)) {
            made.all.push_back(std::move(stretch));
        }
    };
    for (std::size_t i = 0; i < gaps.size(); ++i) {
        if (!gaps[i].fits(*rate, finest_jump)) {
            if (jumps++ == 0) {
                made.jumped += " between " + seconds(pairs[i], pairs.front()) + " and " +
                               seconds(pairs[i + 1], pairs.front()) + " s after its first pair";
            }
            const auto unsure = static_cast<std::uint64_t>(std::max(0.0, gaps[i].excess(*rate) / *rate));
            open.unsure_at_end = unsure;
            close(std::exchange(open, ClockStretch{{}, unsure}));
        }
        open.pairs.push_back(pairs[i + 1]);
    }
    close(std::move(open));
    made.jumped += (jumps > 1 ? " and " + std::to_string(jumps - 1) + " times more" : "") + std::string(why) +
                   ". What was recorded meanwhile has no time and is counted as lost" + advice;
    return made;
}

} // namespace plumb::recording
