// SPDX-License-Identifier: Apache-2.0
#include "cli/nearest.hpp"

#include <algorithm>

namespace plumb::cli {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) {
        row[j] = j;
    }
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before = above;
        above = row;
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
    }
    return row[b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
    constexpr std::size_t longest = 64; // nobody mistypes a longer one
    if (word.empty() || word.size() > longest) {
        return {};
    }
    std::size_t limit = std::max<std::size_t>(1, word.size() / 3) + 1;
    std::string best;
    for (const std::string& candidate : known) {
        const std::size_t distance = candidate.size() > longest ? limit : edit_distance(word, candidate);
        if (distance < limit) {
            limit = distance;
            best = candidate;
        }
    }
    return best;
}

} // namespace plumb::cli
