// SPDX-License-Identifier: Apache-2.0
#include "decoder/tokenizer/tokenizer.hpp"

#include <algorithm>
#include <utility>

#include "decoder/tokenizer/utf8.hpp"

namespace plumb::decoder {
namespace {

constexpr std::string_view space_mark = "\xe2\x96\x81"; // U+2581 stands for a space in scored pieces

std::string with_marks(std::string_view text, bool space_first) {
    std::string out(space_first ? space_mark : std::string_view());
    for (const char c : text) {
        out += c == ' ' ? std::string(space_mark) : std::string(1, c);
    }
    return out;
}

/// Bytes of a token that is written in the byte alphabet; a character outside of it stands for itself.
std::string from_alphabet(std::string_view token) {
    static const std::unordered_map<std::string_view, char> bytes = [] {
        std::unordered_map<std::string_view, char> made;
        for (std::size_t byte = 0; byte < 256; ++byte) {
            made.emplace(byte_alphabet()[byte], static_cast<char>(byte));
        }
        return made;
    }();
    std::string out;
    for (std::size_t at = 0; at < token.size();) {
        const std::string_view character = token.substr(at, character_bytes(token.substr(at)));
        const auto found = bytes.find(character);
        out += found != bytes.end() ? std::string(1, found->second) : std::string(character);
        at += character.size();
    }
    return out;
}

std::string hex(unsigned char byte) {
    constexpr char digits[] = "0123456789abcdef";
    return {'0', 'x', digits[byte >> 4], digits[byte & 15]};
}

} // namespace

Result<Tokenizer> Tokenizer::make(const gguf::Contents& contents) {
    Result<Vocabulary> vocabulary = read_vocabulary(contents);
    if (!vocabulary) {
        return vocabulary.error();
    }
    Tokenizer out(std::move(*vocabulary));
    if (out.vocabulary_.kind == TokenizerKind::byte_pairs) {
        Result<Splitter> splitter = Splitter::make(out.vocabulary_.pre);
        if (!splitter) {
            return splitter.error();
        }
        out.splitter_ = std::move(*splitter);
    }
    std::vector<SpecialToken> marked;
    for (const auto& [text, id] : out.vocabulary_.marked) {
        marked.push_back({text, id, out.vocabulary_.types[static_cast<std::size_t>(id)] == TokenType::user});
    }
    Result<SpecialTokens> special = SpecialTokens::make(marked);
    if (!special) {
        return special.error();
    }
    out.special_ = std::move(*special);
    return out;
}

Result<std::vector<std::int32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) {
    std::vector<std::int32_t> out;
    if (options.begin && vocabulary_.add_begin) {
        out.push_back(vocabulary_.begin);
    }
    std::size_t plain = 0; // where the text begins that is not encoded yet
    bool begins = true;    // at the beginning, and again behind each special token
    const auto flush = [&](std::size_t until) -> Status {
        if (until == plain) {
            return {};
        }
        const Status status = encode_plain(text.substr(plain, until - plain), std::exchange(begins, false), out);
        return status;
    };
    const std::vector<Found> found = special_.find(text, options.special).last_first;
    for (auto one = found.rbegin(); one != found.rend(); ++one) {
        if (one->at < plain) { // within the token before
            continue;
        }
        if (Status status = flush(one->at); !status) {
            return status.error();
        }
        begins = true;
        out.push_back(one->token);
        plain = one->at + one->length;
    }
    if (Status status = flush(text.size()); !status) {
        return status.error();
    }
    return out;
}

Status Tokenizer::encode_plain(std::string_view text, bool begins, std::vector<std::int32_t>& out) {
    if (vocabulary_.kind == TokenizerKind::byte_pairs) {
        return encode_bytes(text, out);
    }
    return encode_pieces(with_marks(text, begins && vocabulary_.add_space), out);
}

Status Tokenizer::encode_bytes(std::string_view text, std::vector<std::int32_t>& out) {
    Result<std::vector<std::string_view>> words = splitter_->split(text);
    if (!words) {
        return words.error();
    }
    for (const std::string_view word : *words) {
        if (Status status = encode_word(word, out); !status) {
            return status;
        }
    }
    return {};
}

Status Tokenizer::encode_word(std::string_view word, std::vector<std::int32_t>& out) {
    if (vocabulary_.whole_words) {
        std::string written;
        for (const char byte : word) {
            written += byte_alphabet()[static_cast<unsigned char>(byte)];
        }
        if (const auto found = vocabulary_.ids.find(written); found != vocabulary_.ids.end()) {
            out.push_back(found->second);
            return {};
        }
    }
    symbols_.clear();
    for (std::size_t i = 0; i < word.size(); ++i) {
        const auto byte = static_cast<unsigned char>(word[i]);
        if (vocabulary_.bytes[byte] == no_token) {
            return Error{ErrorCode::unsupported, "the file's vocabulary has no token for the byte " + hex(byte) +
                                                     "; leave it out of the prompt, or give --tokens"};
        }
        symbols_.push_back({word.substr(i, 1), vocabulary_.bytes[byte]});
    }
    merging_.run(symbols_, [this](const Symbol& left, const Symbol& right) -> std::optional<Joined> {
        const auto key = static_cast<std::uint64_t>(left.token) << 32 | static_cast<std::uint32_t>(right.token);
        const auto found = vocabulary_.merges.find(key);
        if (found == vocabulary_.merges.end()) {
            return std::nullopt;
        }
        return Joined{static_cast<double>(found->second.rank), found->second.token};
    });
    for (const Symbol& symbol : symbols_) {
        out.push_back(symbol.token);
    }
    return {};
}

Status Tokenizer::encode_pieces(std::string_view text, std::vector<std::int32_t>& out) {
    const auto token_of = [this](std::string_view written) {
        const auto found = vocabulary_.ids.find(written);
        return found == vocabulary_.ids.end() ? no_token : found->second;
    };
    symbols_.clear();
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view character = text.substr(at, character_bytes(text.substr(at)));
        symbols_.push_back({character, token_of(character)});
        at += character.size();
    }
    merging_.run(symbols_, [&](const Symbol& left, const Symbol& right) -> std::optional<Joined> {
        const std::int32_t token = token_of({left.text.data(), left.text.size() + right.text.size()});
        if (token == no_token) {
            return std::nullopt;
        }
        return Joined{-static_cast<double>(vocabulary_.scores[static_cast<std::size_t>(token)]), token};
    });
    for (const Symbol& symbol : symbols_) {
        if (symbol.token != no_token) {
            out.push_back(symbol.token);
            continue;
        }
        for (const char c : symbol.text) { // a character that is no token is written in bytes
            const auto byte = static_cast<unsigned char>(c);
            const std::int32_t token =
                vocabulary_.bytes[byte] != no_token ? vocabulary_.bytes[byte] : vocabulary_.unknown;
            if (token == no_token) {
                return Error{ErrorCode::unsupported, "the file's vocabulary cannot write the byte " + hex(byte) +
                                                         "; leave it out of the prompt, or give --tokens"};
            }
            out.push_back(token);
        }
    }
    return {};
}

std::string Tokenizer::piece(std::int32_t token) const {
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_.tokens.size()) {
        return {};
    }
    const auto id = static_cast<std::size_t>(token);
    const std::string& text = vocabulary_.tokens[id];
    switch (vocabulary_.types[id]) {
    case TokenType::control:
    case TokenType::unused:
        return {};
    case TokenType::user:
        return text;
    default:
        break;
    }
    if (vocabulary_.kind == TokenizerKind::byte_pairs) {
        return from_alphabet(text);
    }
    if (vocabulary_.types[id] == TokenType::byte) {
        const auto found = std::find(vocabulary_.bytes.begin(), vocabulary_.bytes.end(), token);
        return found == vocabulary_.bytes.end() ? text
                                                : std::string(1, static_cast<char>(found - vocabulary_.bytes.begin()));
    }
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
        const bool space = std::string_view(text).substr(at).starts_with(space_mark);
        out += space ? ' ' : text[at];
        at += space ? space_mark.size() : 1;
    }
    return out;
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens) const {
    std::string out;
    bool begins = true; // as in encode()
    for (const std::int32_t token : tokens) {
        const std::string text = piece(token);
        const bool space = std::exchange(begins, vocabulary_.special(token)) && vocabulary_.add_space;
        out.append(text, space && text.starts_with(' ') && !begins ? 1 : 0);
    }
    return out;
}

bool Tokenizer::stops(std::int32_t token) const noexcept {
    return std::binary_search(vocabulary_.stops.begin(), vocabulary_.stops.end(), token);
}

std::string Utf8Stream::take(std::string_view piece) {
    kept_ += piece;
    const std::size_t whole = whole_characters(kept_);
    std::string out = kept_.substr(0, whole);
    kept_.erase(0, whole);
    return out;
}

std::string Utf8Stream::finish() { return std::exchange(kept_, {}); }

} // namespace plumb::decoder
