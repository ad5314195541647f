// SPDX-License-Identifier: Apache-2.0
#include "decoder/tokenizer/special_tokens.hpp"

#include <algorithm>
#include <string>

namespace plumb::decoder {
namespace {

/// By the bytes from last to first.
bool reversed_less(const SpecialToken& a, const SpecialToken& b) {
    return std::lexicographical_compare(
        a.text.rbegin(), a.text.rend(), b.text.rbegin(), b.text.rend(),
        [](char x, char y) { return static_cast<unsigned char>(x) < static_cast<unsigned char>(y); });
}

} // namespace

SpecialTokens::SpecialTokens() : states_(1) {}

Result<SpecialTokens> SpecialTokens::make(std::span<const SpecialToken> tokens) {
    std::size_t bytes = 0;
    for (const SpecialToken& token : tokens) {
        bytes += token.text.size();
    }
    if (bytes > largest) {
        return Error{ErrorCode::unsupported, "the file's control and user tokens take " + std::to_string(bytes) +
                                                 " bytes, and at most " + std::to_string(largest) +
                                                 " are searched for in a text; give the prompt's token ids with "
                                                 "--tokens"};
    }
    std::vector<SpecialToken> sorted(tokens.begin(), tokens.end());
    std::sort(sorted.begin(), sorted.end(), reversed_less);
    SpecialTokens out;
    out.tokens_.reserve(sorted.size());
    for (const SpecialToken& token : sorted) {
        out.tokens_.push_back({static_cast<std::uint32_t>(token.text.size()), token.token});
    }
    out.add_states(sorted);
    for (std::uint32_t state = 0; state < out.states_.size(); ++state) {
        out.link_children(state);
    }
    return out;
}

/// Level by level, so that children lie together and a state behind all shorter ones.
void SpecialTokens::add_states(const std::vector<SpecialToken>& sorted) {
    struct Range {
        std::uint32_t begin, end, depth; // the sorted tokens that a state leads to, and its length
    };
    std::vector<Range> ranges{{0, static_cast<std::uint32_t>(sorted.size()), 0}};
    for (std::uint32_t state = 0; state < ranges.size(); ++state) {
        const Range range = ranges[state];
        std::uint32_t at = range.begin;
        if (at < range.end && sorted[at].text.size() == range.depth) { // itself a token, before those that go on
            states_[state].any = static_cast<std::int32_t>(at);
            states_[state].user = sorted[at].user ? static_cast<std::int32_t>(at) : -1;
            ++at;
        }
        states_[state].children = static_cast<std::uint32_t>(states_.size());
        while (at < range.end) {
            const auto byte_of = [&](std::uint32_t i) {
                return static_cast<unsigned char>(sorted[i].text[sorted[i].text.size() - 1 - range.depth]);
            };
            const std::uint32_t begin = at;
            while (at < range.end && byte_of(at) == byte_of(begin)) {
                ++at;
            }
            State child;
            child.byte = byte_of(begin);
            states_.push_back(child);
            ranges.push_back({begin, at, range.depth + 1});
            ++states_[state].child_count;
        }
    }
    for (std::uint32_t i = 0; i < states_[root].child_count; ++i) {
        first_[states_[states_[root].children + i].byte] = states_[root].children + i;
    }
}

/// REQUIRES that all states as short as the parent are linked.
void SpecialTokens::link_children(std::uint32_t parent) {
    std::uint64_t uncounted = 0;
    for (std::uint32_t i = 0; i < states_[parent].child_count; ++i) {
        State& linked = states_[states_[parent].children + i];
        linked.shorter = parent == root ? root : next(states_[parent].shorter, linked.byte, uncounted);
        const State& shorter = states_[linked.shorter];
        linked.any = linked.any >= 0 ? linked.any : shorter.any;
        linked.user = linked.user >= 0 ? linked.user : shorter.user;
    }
}

std::uint32_t SpecialTokens::child(std::uint32_t state, unsigned char byte) const noexcept {
    if (state == root) {
        return first_[byte];
    }
    const auto begin = states_.begin() + states_[state].children, end = begin + states_[state].child_count;
    const auto found =
        std::lower_bound(begin, end, byte, [](const State& one, unsigned char wanted) { return one.byte < wanted; });
    return found != end && found->byte == byte ? static_cast<std::uint32_t>(found - states_.begin()) : root;
}

std::uint32_t SpecialTokens::next(std::uint32_t state, unsigned char byte, std::uint64_t& moves) const noexcept {
    for (;; state = states_[state].shorter) {
        ++moves;
        const std::uint32_t behind = child(state, byte);
        if (behind != root || state == root) {
            return behind;
        }
    }
}

Finds SpecialTokens::find(std::string_view text, bool control) const {
    Finds out;
    std::uint32_t state = root;
    for (std::size_t at = text.size(); at-- > 0;) {
        state = next(state, static_cast<unsigned char>(text[at]), out.moves);
        const std::int32_t found = control ? states_[state].any : states_[state].user;
        if (found >= 0) {
            const Token& token = tokens_[static_cast<std::size_t>(found)];
            out.last_first.push_back({at, token.length, token.token});
        }
    }
    return out;
}

} // namespace plumb::decoder
