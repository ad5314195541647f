// SPDX-License-Identifier: Apache-2.0
#include "attach/nvtx/outcome.hpp"

#include <string>

#include "attach/attachment.hpp"

namespace plumb::attach::nvtx {
namespace {

std::string counted(std::uint64_t count, const char* what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

} // namespace

void tell_outcome(const RangeCounts& ranges, const StartCounts& starts, const TextCounts& texts, bool on_device) {
    profiler().describe("nvtx", counted(ranges.ranges + starts.started, "range") + ", " + counted(texts.kept, "name") +
                                    ", of which no rule knew " + std::to_string(texts.own));
    if (const std::uint64_t open = ranges.never_ended + starts.open; open != 0) {
        say(counted(open, "NVTX range") + " never ended: not recorded");
    }
    if (const std::uint64_t lone = ranges.never_begun + starts.never_started; lone != 0) {
        say(counted(lone, "end") + " of an NVTX range that had not begun: nothing was recorded for it");
    }
    if (starts.refused != 0) {
        say(counted(starts.refused, "NVTX range") + " started while " + std::to_string(OpenStarts::most_open) +
            " others were open: not recorded");
    }
    if (texts.other != 0) {
        say("more than " + std::to_string(Texts::most_own_names) +
            " names of NVTX ranges that no rule knows: the later ones are together in the brick \"other\"");
    }
    if (texts.anew != 0) {
        say("NVTX ranges had more texts than are kept: " + counted(texts.anew, "time") +
            " one was looked up by the rules again, which takes some microseconds");
    }
    if (texts.given_up != 0) {
        say("a rule of nvtx.rules took too many steps on " + counted(texts.given_up, "name") +
            " and was given up there");
    }
    if (on_device) {
        say("NVTX ranges are time of the host: what one hands to a GPU may run after it has ended, so bricks have no rates");
    }
}

} // namespace plumb::attach::nvtx
