// SPDX-License-Identifier: Apache-2.0
#include "layers/lags.hpp"

#include <algorithm>
#include <unordered_map>

namespace plumb {
namespace {

constexpr std::size_t votes_of_a_symbol = 6, lags_looked_at = 48;

bool same(std::uint32_t a, std::uint32_t b) { return a == b && a != no_symbol; }

/// Distances between equal symbols, those first that most symbols have.
std::vector<std::size_t> voted_lags(std::span<const std::uint32_t> symbols) {
    std::vector<std::uint32_t> votes(std::min(longest_unit, symbols.size() / 2) + 1);
    std::unordered_map<std::uint32_t, std::vector<std::size_t>> seen;
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        if (symbols[i] == no_symbol) {
            continue;
        }
        std::vector<std::size_t>& last = seen[symbols[i]];
        for (const std::size_t before : last) {
            if (i - before < votes.size()) {
                ++votes[i - before];
            }
        }
        if (last.size() == votes_of_a_symbol) {
            last.erase(last.begin());
        }
        last.push_back(i);
    }
    std::vector<std::size_t> lags;
    for (std::size_t lag = shortest_unit; lag < votes.size(); ++lag) {
        if (votes[lag] != 0) {
            lags.push_back(lag);
        }
    }
    std::stable_sort(lags.begin(), lags.end(), [&votes](std::size_t a, std::size_t b) { return votes[a] > votes[b]; });
    lags.resize(std::min(lags.size(), lags_looked_at));
    return lags;
}

/// What a lag explains: the length of its runs, which end where mismatches outweigh what went before.
std::size_t explained_by(std::span<const std::uint32_t> symbols, std::size_t lag) {
    const std::size_t end = symbols.size() - lag;
    const std::int64_t patience = std::max<std::int64_t>(4, static_cast<std::int64_t>(lag) / 2);
    std::size_t explained = 0;
    for (std::size_t i = 0; i < end; ++i) {
        if (!same(symbols[i], symbols[i + lag])) {
            continue;
        }
        std::int64_t score = 0, best = 0;
        std::size_t matches = 0, best_matches = 0, best_at = i;
        for (std::size_t k = i; k < end && best - score <= patience; ++k) {
            const bool match = same(symbols[k], symbols[k + lag]);
            score += match ? 1 : -2;
            matches += match ? 1 : 0;
            if (score > best) {
                best = score;
                best_at = k;
                best_matches = matches;
            }
        }
        if (2 * (best_at + 1 - i) >= lag) {
            explained += best_matches;
        }
        i = best_at;
    }
    return explained;
}

} // namespace

std::vector<std::size_t> likely_lags(std::span<const std::uint32_t> symbols) {
    struct Candidate {
        std::size_t lag, explained;
    };
    std::vector<Candidate> candidates;
    for (const std::size_t lag : voted_lags(symbols)) {
        if (const std::size_t explained = explained_by(symbols, lag); explained >= lag) {
            candidates.push_back({lag, explained});
        }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.explained > b.explained; });
    std::vector<std::size_t> lags;
    for (const Candidate& candidate : candidates) {
        lags.push_back(candidate.lag);
    }
    return lags;
}

std::size_t best_stretch(std::span<const std::uint32_t> symbols, std::size_t lag) {
    const auto agree = [symbols, lag](std::size_t i) {
        return (i + lag < symbols.size() && same(symbols[i], symbols[i + lag]) ? 1 : 0) +
               (i >= lag && same(symbols[i], symbols[i - lag]) ? 1 : 0);
    };
    int score = 0, best = -1;
    std::size_t begin = 0;
    for (std::size_t end = 0; end < symbols.size(); ++end) {
        score += agree(end) - (end >= lag ? agree(end - lag) : 0);
        if (end + 1 >= lag && score > best) {
            best = score;
            begin = end + 1 - lag;
        }
    }
    return begin;
}

} // namespace plumb
