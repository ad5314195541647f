// SPDX-License-Identifier: Apache-2.0
#include "import/rules/kernel_rules.hpp"

#include <filesystem>
#include <list>

#include "import/rules/kernel_name.hpp"
#include "import/rules/regex.hpp"
#include "import/rules/rules_file.hpp"

namespace plumb::imported {
namespace {

struct CompiledRule {
    RuleLine line;
    Regex regex;
};

} // namespace

struct KernelRules::State {
    std::list<Source> sources; // what the rules view
    std::vector<CompiledRule> unwraps;
    std::vector<CompiledRule> rules;
    RegexMatcher matcher;

    bool matches(const CompiledRule& rule, std::string_view text) { return matcher.matches(rule.regex, text); }
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
    std::error_code error;
    const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::string own = installed_rules(program.parent_path().parent_path(), "kernels.rules");
    if (!own.empty()) {
        all.push_back(own);
    }
    for (const std::string& file : all) {
        Result<Source> source = read_rules_text(file);
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
    if (!state->matcher.usable()) {
        return Error{ErrorCode::out_of_memory, "there is no memory for the rules of kernel names"};
    }
    for (Source& source : sources) {
        const Source& kept = state->sources.emplace_back(std::move(source));
        const Result<std::vector<RuleLine>> lines = read_rules(kept.text, kept.file);
        if (!lines) {
            return lines.error();
        }
        for (const RuleLine& line : *lines) {
            Result<Regex> regex = Regex::compile(line.regex, kept.file, line.number);
            if (!regex) {
                return regex.error();
            }
            (line.brick.empty() ? state->unwraps : state->rules).push_back({line, std::move(*regex)});
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

std::size_t KernelRules::given_up() const noexcept { return state_->matcher.given_up(); }

} // namespace plumb::imported
