// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_rules.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <filesystem>
#include <fstream>
#include <list>

#include "import/rules/kernel_name.hpp"
#include "import/rules/rules_file.hpp"

namespace plumb::imported {
namespace {

constexpr std::uintmax_t largest_file = 1 << 20;
constexpr std::uint32_t most_steps = 20'000; // of one rule on one name; those built in take some hundred
constexpr std::uint32_t most_heap_kib = 1024;

struct FreePcre {
    void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
    void operator()(pcre2_match_context* context) const noexcept { pcre2_match_context_free(context); }
};
template <class T>
using Pcre = std::unique_ptr<T, FreePcre>;

struct CompiledRule {
    RuleLine line;
    Pcre<pcre2_code> code;
};

Result<CompiledRule> compiled(const RuleLine& line, const std::string& file) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    Pcre<pcre2_code> code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(line.regex.data()), line.regex.size(),
                                        PCRE2_CASELESS | PCRE2_DOTALL | PCRE2_NO_AUTO_CAPTURE | PCRE2_NEVER_UTF |
                                            PCRE2_NEVER_UCP | PCRE2_NEVER_BACKSLASH_C,
                                        &error, &offset, nullptr));
    if (code == nullptr) {
        PCRE2_UCHAR why[256] = {};
        pcre2_get_error_message(error, why, sizeof why);
        return rule_error(file, line.number,
                          "the regex is wrong at its byte " + std::to_string(offset) + ": " +
                              reinterpret_cast<const char*>(why));
    }
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE); // where there is none the interpreter does the same
    return CompiledRule{line, std::move(code)};
}

Result<KernelRules::Source> read(const std::string& file) {
    std::error_code error;
    if (std::filesystem::is_directory(file, error)) {
        return Error{ErrorCode::invalid_argument, file + " is a folder: name a rules file"};
    }
    std::ifstream in(file, std::ios::binary);
    std::string text(largest_file + 1, '\0');
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(in.gcount()));
    if (!in.eof() && !in.good()) {
        return Error{ErrorCode::not_found, "the rules file " + file + " cannot be read: check its name"};
    }
    if (text.size() > largest_file) {
        return Error{ErrorCode::invalid_argument, file + " is no rules file: it is larger than 1 MiB"};
    }
    return KernelRules::Source{file, std::move(text)};
}

/// Empty where plumb is not installed.
std::string installed_rules() {
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    const auto rules = program.parent_path().parent_path() / "share" / "plumb" / "kernels.rules";
    return !error && std::filesystem::is_regular_file(rules, error) ? rules.string() : std::string();
}

} // namespace

struct KernelRules::State {
    std::list<Source> sources; // what the rules view
    std::vector<CompiledRule> unwraps;
    std::vector<CompiledRule> rules;
    Pcre<pcre2_match_context> limits{pcre2_match_context_create(nullptr)};
    Pcre<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
    std::size_t given_up = 0;

    bool matches(const CompiledRule& rule, std::string_view text) {
        const int found = pcre2_match(rule.code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                      data.get(), limits.get());
        given_up += found < 0 && found != PCRE2_ERROR_NOMATCH;
        return found >= 0;
    }
    const CompiledRule* first_match(std::string_view base, std::string_view whole) {
        for (const CompiledRule& rule : rules) {
            if (matches(rule, rule.line.whole ? whole : base)) {
                return &rule;
            }
        }
        return nullptr;
    }
};

KernelRules::KernelRules(std::unique_ptr<State> state) : state_(std::move(state)) {}
KernelRules::KernelRules(KernelRules&&) noexcept = default;
KernelRules& KernelRules::operator=(KernelRules&&) noexcept = default;
KernelRules::~KernelRules() = default;

Result<KernelRules> KernelRules::load(const std::vector<std::string>& files) {
    std::vector<Source> sources;
    std::vector<std::string> all = files;
    const std::string own = installed_rules();
    if (!own.empty()) {
        all.push_back(own);
    }
    for (const std::string& file : all) {
        Result<Source> source = read(file);
        if (!source) {
            return source.error();
        }
        sources.push_back(std::move(*source));
    }
    if (own.empty()) {
        sources.push_back({"kernels.rules", std::string(built_in_rules())});
    }
    return compile(std::move(sources));
}

Result<KernelRules> KernelRules::compile(std::vector<Source> sources) {
    auto state = std::make_unique<State>();
    if (state->limits == nullptr || state->data == nullptr) {
        return Error{ErrorCode::out_of_memory, "there is no memory for the rules of kernel names"};
    }
    pcre2_set_match_limit(state->limits.get(), most_steps);
    pcre2_set_heap_limit(state->limits.get(), most_heap_kib);
    for (Source& source : sources) {
        const Source& kept = state->sources.emplace_back(std::move(source));
        const Result<std::vector<RuleLine>> lines = read_rules(kept.text, kept.file);
        if (!lines) {
            return lines.error();
        }
        for (const RuleLine& line : *lines) {
            Result<CompiledRule> rule = compiled(line, kept.file);
            if (!rule) {
                return rule.error();
            }
            (line.brick.empty() ? state->unwraps : state->rules).push_back(std::move(*rule));
        }
    }
    return KernelRules(std::move(state));
}

KernelLabel KernelRules::label(std::string_view name) {
    const std::string whole = readable_kernel_name(name);
    std::string base = base_kernel_name(whole);
    for (const CompiledRule& unwrap : state_->unwraps) {
        if (state_->matches(unwrap, base)) {
            base = whole;
            break;
        }
    }
    const CompiledRule* rule = state_->first_match(base, whole);
    if (rule == nullptr && base != whole) {
        rule = state_->first_match(whole, whole);
    }
    if (rule == nullptr) {
        return {};
    }
    return {rule->line.brick, rule->line.piece, rule->line.certainty, anchor_of(rule->line.brick), LabelEvidence::name};
}

std::size_t KernelRules::given_up() const noexcept { return state_->given_up; }

} // namespace plumb::imported
