// SPDX-License-Identifier: Apache-2.0
// Text to tokens and back, with the tokenizer that the model's file stores: byte pairs (gpt2) or scored pieces (llama).
// Chat templates are the caller's: special tokens are recognised in the text as they stand.
// Owned by the caller; one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decoder/tokenizer/merging.hpp"
#include "decoder/tokenizer/special_tokens.hpp"
#include "decoder/tokenizer/split.hpp"
#include "decoder/tokenizer/vocabulary.hpp"
#include "plumb/result.hpp"

namespace plumb::decoder {

struct EncodeOptions {
    bool begin = true;   // the begin token first, where the model expects one
    bool special = true; // control and unknown tokens written in the text become those tokens
};

class Tokenizer {
  public:
    /// Errors: not_found, unsupported, corrupt, each with what to do instead.
    static Result<Tokenizer> make(const gguf::Contents& contents);

    /// Errors: unsupported (a byte or character that the vocabulary cannot write), failed.
    [[nodiscard]] Result<std::vector<std::int32_t>> encode(std::string_view text, const EncodeOptions& options = {});
    /// The bytes of a token, which need not be whole characters; nothing for control tokens and ids that do not exist.
    [[nodiscard]] std::string piece(std::int32_t token) const;
    /// All pieces; what encode() put before the text is taken away again.
    [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const;
    /// True for tokens by which a model says that it has finished.
    [[nodiscard]] bool stops(std::int32_t token) const noexcept;
    [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

  private:
    explicit Tokenizer(Vocabulary&& vocabulary) : vocabulary_(std::move(vocabulary)) {}
    [[nodiscard]] Status encode_plain(std::string_view text, bool begins, std::vector<std::int32_t>& out);
    [[nodiscard]] Status encode_bytes(std::string_view text, std::vector<std::int32_t>& out);
    [[nodiscard]] Status encode_word(std::string_view word, std::vector<std::int32_t>& out);
    [[nodiscard]] Status encode_pieces(std::string_view text, std::vector<std::int32_t>& out);

    Vocabulary vocabulary_;
    std::optional<Splitter> splitter_;
    SpecialTokens special_;
    Merging merging_;
    std::vector<Symbol> symbols_;
};

/// Whole UTF-8 characters out of pieces that may cut them: what a terminal can be given so far. One thread.
class Utf8Stream {
  public:
    /// Takes a piece; returns what is complete. What can never become a character is returned as it is.
    [[nodiscard]] std::string take(std::string_view piece);
    /// What is left, complete or not.
    [[nodiscard]] std::string finish();

  private:
    std::string kept_;
};

} // namespace plumb::decoder
