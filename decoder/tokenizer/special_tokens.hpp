// SPDX-License-Identifier: Apache-2.0
// Finds tokens that stand in a text as they are, the longest at each place, in time linear in the text however many there are and
// whatever they have in common: a file decides both. An Aho-Corasick automaton of the reversed tokens, fed the text from
// its end, so that its state at a place knows the longest token that begins there.
// Immutable once made; owns its memory; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/vocabulary.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

struct SpecialToken {
    std::string_view text; // not empty
    std::int32_t token = no_token;
    bool user = false; // found also where control tokens are not asked for
};

/// A token that begins at `at`; the longest such.
struct Found {
    std::size_t at = 0;
    std::size_t length = 0;
    std::int32_t token = no_token;
};

struct Finds {
    std::vector<Found> last_first; // they may overlap
    std::uint64_t moves = 0;       // from state to state: at most two for each byte of the text
};

class SpecialTokens {
  public:
    /// The most bytes that all texts together may have.
    static constexpr std::size_t largest = std::size_t{8} << 20;

    SpecialTokens();
    /// Texts must differ. They are not kept. Errors: unsupported (more bytes than `largest`).
    static Result<SpecialTokens> make(std::span<const SpecialToken> tokens);

    [[nodiscard]] Finds find(std::string_view text, bool control) const;

  private:
    /// The end of a text read backwards, as far as it is the beginning of a reversed token.
    struct State {
        std::uint32_t children = 0; // the first; they lie together, in order of their bytes
        std::uint32_t shorter = 0;  // the longest proper ending of this one that is a state
        std::int32_t any = -1;      // the longest token that ends here, an index of tokens_
        std::int32_t user = -1;
        std::uint16_t child_count = 0;
        unsigned char byte = 0; // by which its parent leads here
    };
    struct Token {
        std::uint32_t length;
        std::int32_t token;
    };
    static constexpr std::uint32_t root = 0;

    void add_states(const std::vector<SpecialToken>& sorted);
    void link_children(std::uint32_t parent);
    /// `root` where there is none.
    [[nodiscard]] std::uint32_t child(std::uint32_t state, unsigned char byte) const noexcept;
    /// The state behind one more byte.
    [[nodiscard]] std::uint32_t next(std::uint32_t state, unsigned char byte, std::uint64_t& moves) const noexcept;

    std::vector<State> states_;
    std::vector<Token> tokens_;
    std::array<std::uint32_t, 256> first_{}; // children of the root, which is left most often
};

} // namespace plumb::decoder
