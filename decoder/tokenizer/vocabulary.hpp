// SPDX-License-Identifier: Apache-2.0
// The vocabulary that a GGUF file stores: tokens, what each is for, and how text is cut into them.
// The file is hostile input: counts are bounded by the file, ids by the tokens there are, and wrong types are errors.
// Immutable once read; owns its memory; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decoder/gguf/reader.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

inline constexpr std::int32_t no_token = -1;

/// How text becomes tokens: byte pairs merged by rank ("gpt2" in the file), or pieces merged by score ("llama").
enum class TokenizerKind : std::uint8_t { byte_pairs, scored_pieces };

/// `tokenizer.ggml.token_type`; the numbers are the file format's.
enum class TokenType : std::uint8_t {
    undefined = 0,
    normal = 1,
    unknown = 2,
    control = 3,
    user = 4,
    unused = 5,
    byte = 6
};

struct Merge {
    std::int32_t rank = 0; // lower goes first
    std::int32_t token = no_token;
};

/// Its indices point into its own tokens: it moves, and is never copied.
struct Vocabulary {
    Vocabulary() = default;
    Vocabulary(Vocabulary&&) = default;
    Vocabulary& operator=(Vocabulary&&) = default;

    TokenizerKind kind = TokenizerKind::byte_pairs;
    std::string pre; // name of the rule that cuts text before merging; byte pairs only
    std::vector<std::string> tokens;
    std::vector<TokenType> types;
    std::vector<float> scores;                              // scored pieces only
    std::unordered_map<std::string_view, std::int32_t> ids; // of normal, user, unknown and byte tokens
    std::unordered_map<std::uint64_t, Merge> merges;        // of left id << 32 | right id; byte pairs only
    std::array<std::int32_t, 256> bytes{};                  // the token of each byte, no_token where there is none
    std::unordered_map<std::string_view, std::int32_t>
        marked; // special tokens: control, user and unknown ones, found in text as they stand
    std::int32_t begin = no_token, unknown = no_token;
    std::vector<std::int32_t> stops; // a model says with one of these that it has finished
    bool add_begin = false;          // the model expects `begin` before a text
    bool add_space = false;          // a text begins with a space, also behind a special token; scored pieces only
    bool whole_words = false;        // a word that is a token is never built from merges

    /// Whether the token is one of `marked`.
    [[nodiscard]] bool special(std::int32_t token) const noexcept;
};

/// The alphabet in which byte-pair vocabularies write bytes: printable ASCII and Latin-1 as they are, the others from U+0100 on.
/// UTF-8 of each byte.
[[nodiscard]] const std::array<std::string, 256>& byte_alphabet();

/// Errors: not_found (the file has no tokenizer), unsupported (of another kind), corrupt.
[[nodiscard]] Result<Vocabulary> read_vocabulary(const gguf::Contents& contents);

} // namespace plumb::decoder
