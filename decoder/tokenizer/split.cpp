// SPDX-License-Identifier: Apache-2.0
#include "decoder/tokenizer/split.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

#include "decoder/gguf/text.hpp"

namespace plumb::decoder {
namespace {

#define PLUMB_CONTRACTIONS "'s|'t|'re|'ve|'m|'ll|'d"
#define PLUMB_SPACES R"(\s+(?!\S)|\s+)"

constexpr const char* gpt2 = PLUMB_CONTRACTIONS R"(| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|)" PLUMB_SPACES;
// Digits are taken out first, so that spaces before one end a text as they do before nothing.
constexpr const char* digit_by_digit = PLUMB_CONTRACTIONS R"(| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?![^\s\p{N}])|\s+)";
constexpr const char* llama3 =
    "(?i:" PLUMB_CONTRACTIONS
    R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" PLUMB_SPACES;
constexpr const char* qwen2 =
    "(?i:" PLUMB_CONTRACTIONS R"()|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)" PLUMB_SPACES;
constexpr const char* tekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                               R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                               R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)" PLUMB_SPACES;

struct Known {
    const char* name;
    const char* pattern;
};
constexpr Known rules[] = {{"gpt-2", gpt2},
                           {"", gpt2}, // files from before the rule had a name
                           {"llama-bpe", llama3},
                           {"llama-v3", llama3},
                           {"llama3", llama3},
                           {"qwen2", qwen2},
                           {"deepseek-r1-qwen", qwen2},
                           {"smollm", digit_by_digit},
                           {"starcoder", digit_by_digit},
                           {"refact", digit_by_digit},
                           {"command-r", digit_by_digit},
                           {"tekken", tekken}};

struct FreeMatch {
    void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};

} // namespace

struct Splitter::Rule {
    pcre2_code* code = nullptr;
};

void Splitter::Free::operator()(Rule* rule) const noexcept {
    pcre2_code_free(rule->code);
    delete rule;
}

Result<Splitter> Splitter::make(const std::string& pre) {
    std::string names;
    for (const Known& known : rules) {
        if (pre != known.name) {
            names += *known.name ? std::string(names.empty() ? "" : ", ") + known.name : std::string();
            continue;
        }
        int error = 0;
        PCRE2_SIZE offset = 0;
        pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(known.pattern), PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &error, &offset, nullptr);
        if (code == nullptr) {
            return Error{ErrorCode::failed, "this build's PCRE2 does not know Unicode; install one that does"};
        }
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); // where there is none the interpreter does the same
        return Splitter(new Rule{code});
    }
    return Error{ErrorCode::unsupported, "the file's tokenizer cuts text by the rule \"" + gguf::printable(pre) +
                                             "\"; known ones are " + names +
                                             ": give the prompt's token ids with --tokens"};
}

Result<std::vector<std::string_view>> Splitter::split(std::string_view text) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(
        pcre2_match_data_create_from_pattern(rule_->code, nullptr));
    if (!match) {
        return Error{ErrorCode::out_of_memory, "there is no memory to cut the prompt into words"};
    }
    std::vector<std::string_view> words;
    std::size_t at = 0;
    while (at < text.size()) {
        const int found = pcre2_match(rule_->code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                      PCRE2_NOTEMPTY, match.get(), nullptr);
        if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
            return Error{ErrorCode::failed, "the prompt could not be cut into words at byte " + std::to_string(at) +
                                                "; make it shorter there, or give --tokens"};
        }
        const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
        const std::size_t begin = found < 0 ? text.size() : range[0];
        if (begin > at) { // no rule takes what is no UTF-8
            words.push_back(text.substr(at, begin - at));
        }
        if (found < 0) {
            break;
        }
        words.push_back(text.substr(begin, range[1] - begin));
        at = range[1];
    }
    return words;
}

} // namespace plumb::decoder
