// SPDX-License-Identifier: Apache-2.0
// Merges neighbours, best pair first and of equals the leftmost, until no pair is left: what byte pairs and scored pieces
// have in common. O(n log n). Owned by a tokenizer, reused between words; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/vocabulary.hpp"

namespace plumb::decoder {

struct Symbol {
    std::string_view text;
    std::int32_t token = no_token;
};

struct Joined {
    double rank = 0; // lower goes first
    std::int32_t token = no_token;
};

class Merging {
  public:
    /// `join(left, right)` gives what two neighbours become, or nothing. The texts of neighbours must adjoin.
    template <class Join>
    void run(std::vector<Symbol>& symbols, Join join) {
        const std::size_t n = symbols.size();
        next_.resize(n);
        before_.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            next_[i] = i + 1;
            before_[i] = i - 1; // of the first: none
        }
        const auto propose = [&](std::size_t left) {
            const std::size_t right = next_[left];
            if (right >= n) {
                return;
            }
            if (const std::optional<Joined> joined = join(symbols[left], symbols[right])) {
                waiting_.push({*joined, left, right, symbols[left].text.size() + symbols[right].text.size()});
            }
        };
        for (std::size_t i = 0; i + 1 < n; ++i) {
            propose(i);
        }
        while (!waiting_.empty()) {
            const Candidate best = waiting_.top();
            waiting_.pop();
            Symbol& left = symbols[best.left];
            Symbol& right = symbols[best.right];
            // One of the two may have been merged since.
            if (left.text.empty() || right.text.empty() || next_[best.left] != best.right ||
                left.text.size() + right.text.size() != best.bytes) {
                continue;
            }
            left = {{left.text.data(), best.bytes}, best.joined.token};
            right.text = {};
            next_[best.left] = next_[best.right];
            if (next_[best.right] < n) {
                before_[next_[best.right]] = best.left;
            }
            propose(best.left);
            if (before_[best.left] < n) {
                propose(before_[best.left]);
            }
        }
        std::erase_if(symbols, [](const Symbol& symbol) { return symbol.text.empty(); });
    }

  private:
    struct Candidate {
        Joined joined;
        std::size_t left = 0, right = 0, bytes = 0;
        friend bool operator<(const Candidate& a, const Candidate& b) { // the greatest of a queue comes first
            return a.joined.rank != b.joined.rank ? a.joined.rank > b.joined.rank : a.left > b.left;
        }
    };

    std::vector<std::size_t> next_, before_;
    std::priority_queue<Candidate> waiting_;
};

} // namespace plumb::decoder
