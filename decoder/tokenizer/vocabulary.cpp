// SPDX-License-Identifier: Apache-2.0
#include "decoder/tokenizer/vocabulary.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "decoder/gguf/text.hpp"

namespace plumb::decoder {
namespace {

using gguf::Contents;
using gguf::Value;
using gguf::ValueType;

constexpr std::uint64_t most_tokens = std::uint64_t{1} << 22;
constexpr const char* prefix = "tokenizer.ggml.";

std::string in_utf8(unsigned code_point) {
    if (code_point < 0x80) {
        return std::string(1, static_cast<char>(code_point));
    }
    return {static_cast<char>(0xc0U | (code_point >> 6)), static_cast<char>(0x80U | (code_point & 0x3fU))};
}

Error wrong(const std::string& key, const std::string& what) {
    return {ErrorCode::corrupt, "the file's tokenizer cannot be used: " + std::string(prefix) + key + " " + what +
                                    "; give --tokens instead"};
}

const Value* find(const Contents& contents, const std::string& key) { return contents.find(prefix + key); }

std::string text_of(const Contents& contents, const std::string& key) {
    const Value* value = find(contents, key);
    return value ? std::string(value->as_string().value_or("")) : std::string();
}

bool flag_of(const Contents& contents, const std::string& key, bool otherwise) {
    const Value* value = find(contents, key);
    return value ? value->as_bool().value_or(otherwise) : otherwise;
}

/// Calls take(element) for each element of an array; take returns false for one that does not fit.
template <class Take>
Status each(const Contents& contents, const std::string& key, bool required, Take take) {
    const Value* value = find(contents, key);
    if (!value) {
        return required ? Status(wrong(key, "is missing")) : Status();
    }
    if (value->type != ValueType::array) {
        return wrong(key, "is no array");
    }
    if (value->count > most_tokens) {
        return wrong(key, "has more than " + std::to_string(most_tokens) + " elements");
    }
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < value->count; ++i) {
        if (!take(value->next_element(at))) {
            return wrong(key, "has an element of the wrong kind at " + std::to_string(i));
        }
    }
    return {};
}

std::int32_t id_of(const Contents& contents, const std::string& key, const Vocabulary& vocabulary) {
    const Value* value = find(contents, key);
    const std::optional<std::uint64_t> id = value ? value->as_unsigned() : std::nullopt;
    return id && *id < vocabulary.tokens.size() ? static_cast<std::int32_t>(*id) : no_token;
}

Status read_tokens(const Contents& contents, Vocabulary& out) {
    if (Status status = each(contents, "tokens", true,
                             [&](const Value& value) {
                                 const auto text = value.as_string();
                                 if (text) {
                                     out.tokens.emplace_back(*text);
                                 }
                                 return text.has_value();
                             });
        !status) {
        return status;
    }
    if (Status status = each(contents, "token_type", false,
                             [&](const Value& value) {
                                 const auto type = value.as_unsigned();
                                 if (!type || *type > static_cast<std::uint64_t>(TokenType::byte)) {
                                     return false;
                                 }
                                 out.types.push_back(static_cast<TokenType>(*type));
                                 return true;
                             });
        !status) {
        return status;
    }
    if (Status status = each(contents, "scores", out.kind == TokenizerKind::scored_pieces,
                             [&](const Value& value) {
                                 const auto score = value.as_number();
                                 if (score) {
                                     out.scores.push_back(static_cast<float>(*score));
                                 }
                                 return score.has_value();
                             });
        !status) {
        return status;
    }
    if (out.types.empty()) {
        out.types.assign(out.tokens.size(), TokenType::normal);
    }
    if (out.types.size() != out.tokens.size()) {
        return wrong("token_type", "has not as many elements as tokens");
    }
    if (out.kind == TokenizerKind::scored_pieces && out.scores.size() != out.tokens.size()) {
        return wrong("scores", "has not as many elements as tokens");
    }
    return {};
}

/// "<0x0A>" -> 10.
std::optional<unsigned> byte_named(std::string_view token) {
    const auto digit = [](char c) -> int {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                      : -1;
    };
    if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>' || digit(token[3]) < 0 ||
        digit(token[4]) < 0) {
        return std::nullopt;
    }
    return static_cast<unsigned>(digit(token[3]) * 16 + digit(token[4]));
}

void index_tokens(Vocabulary& out) {
    for (std::size_t i = 0; i < out.tokens.size(); ++i) {
        const std::string_view text = out.tokens[i];
        const auto id = static_cast<std::int32_t>(i);
        const TokenType type = out.types[i];
        if (out.special(id) && !text.empty()) {
            out.marked.emplace(text, id);
        }
        if (type != TokenType::control && type != TokenType::unused) {
            out.ids.emplace(text, id); // of two alike the first
        }
    }
    out.bytes.fill(no_token);
    for (std::size_t i = 0; i < out.tokens.size() && out.kind == TokenizerKind::scored_pieces; ++i) {
        const auto byte = byte_named(out.tokens[i]);
        if (byte && out.types[i] == TokenType::byte) {
            out.bytes[*byte] = static_cast<std::int32_t>(i);
        }
    }
    for (std::size_t byte = 0; byte < 256 && out.kind == TokenizerKind::byte_pairs; ++byte) {
        if (const auto found = out.ids.find(byte_alphabet()[byte]); found != out.ids.end()) {
            out.bytes[byte] = found->second;
        }
    }
}

Status read_merges(const Contents& contents, Vocabulary& out) {
    std::int32_t rank = 0;
    return each(contents, "merges", true, [&](const Value& value) {
        const auto text = value.as_string();
        const std::size_t space = text ? text->find(' ', 1) : std::string_view::npos;
        if (space == std::string_view::npos) {
            return false;
        }
        const std::string_view left = text->substr(0, space), right = text->substr(space + 1);
        const auto a = out.ids.find(left), b = out.ids.find(right);
        const auto made = out.ids.find(std::string(left).append(right));
        // A merge whose parts or result are no tokens can never be used.
        if (a != out.ids.end() && b != out.ids.end() && made != out.ids.end()) {
            const auto key = static_cast<std::uint64_t>(a->second) << 32 | static_cast<std::uint32_t>(b->second);
            out.merges.emplace(key, Merge{rank, made->second});
        }
        ++rank;
        return true;
    });
}

void find_stops(const Contents& contents, Vocabulary& out) {
    std::set<std::int32_t> stops;
    for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
        stops.insert(id_of(contents, key, out));
    }
    for (const char* name :
         {"<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "</s>"}) {
        if (const auto found = out.marked.find(name); found != out.marked.end()) {
            stops.insert(found->second);
        }
    }
    stops.erase(no_token);
    out.stops.assign(stops.begin(), stops.end());
}

} // namespace

const std::array<std::string, 256>& byte_alphabet() {
    static const std::array<std::string, 256> alphabet = [] {
        std::array<std::string, 256> made;
        unsigned other = 0x100;
        for (unsigned byte = 0; byte < 256; ++byte) {
            const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
            made[byte] = in_utf8(printable ? byte : other++);
        }
        return made;
    }();
    return alphabet;
}

bool Vocabulary::special(std::int32_t token) const noexcept {
    if (token < 0 || static_cast<std::size_t>(token) >= types.size()) {
        return false;
    }
    const TokenType type = types[static_cast<std::size_t>(token)];
    return type == TokenType::control || type == TokenType::user || type == TokenType::unknown;
}

Result<Vocabulary> read_vocabulary(const Contents& contents) {
    const std::string model = text_of(contents, "model");
    if (model.empty() || model == "none") {
        return Error{ErrorCode::not_found, "this file has no tokenizer; give the prompt's token ids with --tokens"};
    }
    Vocabulary out;
    if (model != "gpt2" && model != "llama") {
        return Error{ErrorCode::unsupported, "the file's tokenizer is \"" + gguf::printable(model) +
                                                 "\"; gpt2 (byte pairs) and llama (scored pieces) are supported: give "
                                                 "the prompt's token ids with --tokens"};
    }
    out.kind = model == "gpt2" ? TokenizerKind::byte_pairs : TokenizerKind::scored_pieces;
    if (Status status = read_tokens(contents, out); !status) {
        return status.error();
    }
    index_tokens(out);
    const bool pieces = out.kind == TokenizerKind::scored_pieces;
    if (!pieces) {
        if (Status status = read_merges(contents, out); !status) {
            return status.error();
        }
    }
    out.pre = text_of(contents, "pre");
    out.whole_words = out.pre == "llama-bpe" || out.pre == "llama-v3" || out.pre == "llama3" || out.pre == "tekken";
    out.begin = id_of(contents, "bos_token_id", out);
    out.unknown = id_of(contents, "unknown_token_id", out);
    out.add_begin = flag_of(contents, "add_bos_token", pieces || out.whole_words) && out.begin != no_token;
    out.add_space = pieces && flag_of(contents, "add_space_prefix", true);
    find_stops(contents, out);
    return out;
}

} // namespace plumb::decoder
