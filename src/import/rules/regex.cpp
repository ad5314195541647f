// SPDX-License-Identifier: Apache-2.0
#include "import/rules/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "import/rules/rules_file.hpp"

namespace plumb::imported {
namespace {

constexpr std::uint32_t most_steps = 20'000; // of one rule on one name; those built in take some hundred
constexpr std::uint32_t most_heap_kib = 1024;
constexpr std::uint32_t most_groups = 16;

struct FreePcre {
    void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const noexcept { pcre2_match_context_free(context); }
};
template <class T>
using Pcre = std::unique_ptr<T, FreePcre>;

/// Names of the groups in the order of their numbers.
std::vector<std::string> group_names(const pcre2_code* code) {
    std::uint32_t count = 0;
    std::uint32_t entry_bytes = 0;
    PCRE2_SPTR table = nullptr;
    pcre2_pattern_info(code, PCRE2_INFO_NAMECOUNT, &count);
    pcre2_pattern_info(code, PCRE2_INFO_NAMEENTRYSIZE, &entry_bytes);
    pcre2_pattern_info(code, PCRE2_INFO_NAMETABLE, &table);
    std::vector<std::string> names(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        const PCRE2_SPTR entry = table + static_cast<std::size_t>(i) * entry_bytes;
        const std::size_t number = static_cast<std::size_t>(entry[0]) << 8 | entry[1];
        if (number >= 1 && number <= count) {
            names[number - 1] = reinterpret_cast<const char*>(entry + 2);
        }
    }
    return names;
}

} // namespace

struct Regex::Code {
    Pcre<pcre2_code> code;
};

struct RegexMatcher::State {
    Pcre<pcre2_match_context> limits{pcre2_match_context_create(nullptr)};
    Pcre<pcre2_match_data> data{pcre2_match_data_create(most_groups + 1, nullptr)};
};

Regex::Regex(std::unique_ptr<Code> code) : code_(std::move(code)), groups_(group_names(code_->code.get())) {}
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view text, const std::string& file, std::size_t line) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    Pcre<pcre2_code> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                        PCRE2_CASELESS | PCRE2_DOTALL | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_UTF |
                                            PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C,
                                        &error, &offset, nullptr));
    if (code == nullptr) {
        PCRE2_UCHAR why[256] = {};
        pcre2_get_error_message(error, why, sizeof why);
        return rule_error(file, line,
                          "the regex is wrong at its byte " + std::to_string(offset) + ": " +
                              reinterpret_cast<const char*>(why));
    }
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE); // where there is none the interpreter does the same
    Regex made(std::make_unique<Code>(Code{std::move(code)}));
    if (made.groups_.size() > most_groups) {
        return rule_error(file, line, "the regex has more than " + std::to_string(most_groups) + " named groups");
    }
    return made;
}

RegexMatcher::RegexMatcher() : state_(std::make_unique<State>()) {
    if (usable()) {
        pcre2_set_match_limit(state_->limits.get(), most_steps);
        pcre2_set_heap_limit(state_->limits.get(), most_heap_kib);
    }
}
RegexMatcher::~RegexMatcher() = default;

bool RegexMatcher::usable() const noexcept { return state_->limits != nullptr && state_->data != nullptr; }

bool RegexMatcher::matches(const Regex& regex, std::string_view text) {
    const int found = pcre2_match(regex.code_->code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                  state_->data.get(), state_->limits.get());
    given_up_ += found < 0 && found != PCRE2_ERROR_NOMATCH;
    if (found >= 0) {
        text_ = text;
    }
    return found >= 0;
}

std::string_view RegexMatcher::group(std::size_t number) const {
    const PCRE2_SIZE* const places = pcre2_get_ovector_pointer(state_->data.get());
    const bool there = number <= most_groups && places[2 * number] != PCRE2_UNSET;
    return there ? text_.substr(places[2 * number], places[2 * number + 1] - places[2 * number]) : std::string_view();
}

} // namespace plumb::imported
