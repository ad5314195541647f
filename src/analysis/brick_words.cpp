// SPDX-License-Identifier: Apache-2.0
#include "analysis/brick_words.hpp"

#include "plumb/bricks.hpp"

namespace plumb::analysis {
namespace {

bool among(std::string_view word, std::string_view aliases) {
    while (!aliases.empty()) {
        const std::size_t space = aliases.find(' ');
        if (aliases.substr(0, space) == word) {
            return true;
        }
        aliases = space == std::string_view::npos ? std::string_view{} : aliases.substr(space + 1);
    }
    return false;
}

} // namespace

double leaf_calls_ns(const Report& report, Phase phase) {
    double ns = 0;
    for (const Row& row : report.categories) { // of leaves alone
        ns += row.key.phase == phase && !row.lap ? row.sum_per_step_ns : 0;
    }
    return ns;
}

bool wall_is_of_the_host(const PhaseSummary& phase) {
    return phase.device && !phase.all_sampled && (phase.device->replays != 0 || phase.sampled_steps != 0);
}

std::string_view mark_beside_account(std::string_view brick) {
    for (const std::string_view row : {"unattributed", "idle", "overlap", "host: unattributed", "host: idle",
                                       "idle in bricks", bricks_outside, bricks_elsewhere, leaf_calls_in_marked}) {
        if (brick == row) {
            return " (brick)";
        }
    }
    return {};
}

std::string brick_of_word(std::string_view word) {
#define PLUMB_BRICK_OF_WORD(name, id, category, aliases) \
    if (among(word, aliases))                            \
        return #name;
    PLUMB_WELL_KNOWN_BRICKS(PLUMB_BRICK_OF_WORD)
#undef PLUMB_BRICK_OF_WORD
    return std::string(word);
}

bool names_brick(std::string_view word, std::string_view brick) {
    return word == brick || brick_of_word(word) == brick;
}

std::optional<Assignment> assignment_of(std::string_view words) {
    // A brick may hold any character, a value neither of the two.
    const std::size_t equals = words.rfind('=');
    if (equals == std::string_view::npos || equals == 0) {
        return std::nullopt;
    }
    Assignment parts{words.substr(0, equals), words.substr(equals + 1), {}};
    if (const std::size_t slash = parts.value.find('/'); slash != std::string_view::npos) {
        parts.per = parts.value.substr(slash + 1);
        parts.value = parts.value.substr(0, slash);
        if (parts.per.empty()) {
            return std::nullopt;
        }
    }
    return parts.value.empty() ? std::nullopt : std::optional(parts);
}

} // namespace plumb::analysis
