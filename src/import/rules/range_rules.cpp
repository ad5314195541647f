// SPDX-License-Identifier: Apache-2.0
#include "import/rules/range_rules.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "import/rules/module_rules.hpp"
#include "import/rules/regex.hpp"
#include "import/rules/rules_file.hpp"
#include "import/rules/step_name.hpp"

namespace plumb::imported {
namespace {

constexpr std::size_t longest_name = 128; // of a brick that no rule knows

constexpr std::string_view payload_words[] = {"-",       "bytes",  "flops",     "elements", "layer",
                                              "prefill", "decode", "sequences", "kv_length"};

/// What a group of a regex says.
enum class Group : std::uint8_t {
    brick,
    module,
    layer,
    prefill,
    decode,
    prefill_sequences,
    decode_sequences,
    sequences,
    kv_length,
    engine,
    b,
    m,
    k,
    n
};
constexpr std::string_view group_words[] = {
    "brick",  "module", "layer", "prefill", "decode", "prefill_sequences", "decode_sequences", "sequences", "kv_length",
    "engine", "b",      "m",     "k",       "n"};
constexpr std::size_t groups = std::size(group_words);

enum class Naming : std::uint8_t { fixed, by_text, by_module }; // how a brick is called

struct RangeRule {
    RangeKind kind = RangeKind::brick;
    Naming naming = Naming::fixed;
    Phase phase = Phase::none;
    RangePayload payload = RangePayload::none;
    std::string name, domain;                    // domain "*": any, "-": the default one
    std::array<std::uint8_t, groups> group_at{}; // number of each group in the regex; 0: it has none
    std::optional<Regex> regex;
};

/// A number that counts up behind a word of the text, or what follows that word to the end.
struct Skip {
    std::string word;
    bool to_the_end;
};

struct Rules {
    std::vector<RangeRule> rules;
    std::vector<Skip> skips;
};

template <std::size_t Size>
std::size_t index_of(const std::string_view (&words)[Size], std::string_view word) {
    return static_cast<std::size_t>(std::find(std::begin(words), std::end(words), word) - std::begin(words));
}

/// False: the word is none.
bool read_what(std::string_view word, RangeRule& rule) {
    rule.kind = word == "layer"            ? RangeKind::layer
                : word == "hide"           ? RangeKind::hidden
                : word.starts_with("step") ? RangeKind::step
                                           : RangeKind::brick;
    if (rule.kind == RangeKind::step) {
        rule.phase = word == "step:prefill" ? Phase::prefill : word == "step:decode" ? Phase::decode : Phase::none;
        return word == "step" || rule.phase != Phase::none;
    }
    if (rule.kind != RangeKind::brick) {
        return true;
    }
    rule.naming = word == "=" ? Naming::by_text : word == "module" ? Naming::by_module : Naming::fixed;
    rule.name = word;
    return rule.naming != Naming::fixed || is_brick_word(word);
}

std::string read_groups(const std::vector<std::string>& names, RangeRule& rule) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::size_t group = index_of(group_words, names[i]);
        if (group == groups) {
            return "the group " + quoted_word(names[i]) + " means nothing: docs/reference/nvtx.md lists those that do";
        }
        rule.group_at[group] = static_cast<std::uint8_t>(i + 1);
    }
    const auto has = [&rule](Group group) {
        return rule.group_at[static_cast<std::size_t>(group)] != 0;
    };
    if (rule.naming == Naming::by_module && !has(Group::module)) {
        return "a rule for modules needs the group (?<module>…)";
    }
    if (rule.kind == RangeKind::layer && !has(Group::layer) && rule.payload != RangePayload::layer) {
        return "a rule for layers needs the group (?<layer>…), or layer as its payload";
    }
    return {};
}

/// An empty sentence where the line is a rule.
std::string read_line(std::string_view line, const std::string& file, std::size_t number, Rules& into) {
    const std::string_view what = rule_word(line);
    if (what == "count" || what == "cut") {
        const std::string_view word = rest_of_rule(line);
        // Quoted, for the blanks in it.
        if (word.size() < 3 || word.front() != '"' || word.back() != '"') {
            return "a word in quotes must follow: " + std::string(what) + " \", seq = \"";
        }
        into.skips.push_back({std::string(word.substr(1, word.size() - 2)), what == "cut"});
        return {};
    }
    RangeRule rule;
    if (!read_what(what, rule)) {
        return quoted_word(what) +
               " stands where a brick, =, module, step, step:prefill, step:decode, layer or hide is expected";
    }
    rule.domain = rule_word(line);
    const std::string_view payload = rule_word(line);
    const std::size_t role = index_of(payload_words, payload);
    if (role == std::size(payload_words)) {
        return quoted_word(payload) +
               " stands where -, bytes, flops, elements, layer, prefill, decode, sequences or kv_length is expected";
    }
    rule.payload = static_cast<RangePayload>(role);
    const std::string_view regex = rest_of_rule(line);
    if (regex.empty()) {
        return "the regex is missing";
    }
    Result<Regex> compiled = Regex::compile(regex, file, number);
    if (!compiled) { // the sentence names file and line already
        return compiled.error().message.substr(rule_error(file, number, "").message.size());
    }
    rule.regex = std::move(*compiled);
    const std::string why = read_groups(rule.regex->groups(), rule);
    into.rules.push_back(std::move(rule));
    return why;
}

std::uint64_t number(std::string_view digits) {
    std::uint64_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return read.ec == std::errc() && read.ptr == digits.data() + digits.size() ? value : 0;
}

std::optional<std::uint32_t> layer_number(std::string_view digits) {
    constexpr std::uint64_t most_layers = 0xffff; // that a record has room for
    const std::uint64_t value = number(digits);
    return !digits.empty() && value < most_layers && (value != 0 || digits.find_first_not_of('0') == digits.npos)
               ? std::optional(static_cast<std::uint32_t>(value))
               : std::nullopt;
}

/// As a name: valid text of one line.
std::string as_name(std::string_view text) {
    std::string name = base::valid_utf8(text.substr(0, longest_name));
    std::replace_if(
        name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
    return name;
}

/// "top.model.layers.3.mlp.down_proj": brick and layer, by what is known of modules; a module that holds others is called as it is.
void name_by_module(std::string_view path, RangeLabel& label) {
    std::vector<std::string_view> words;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('.'), path.size());
        words.push_back(path.substr(0, end));
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    if (words.empty()) {
        return;
    }
    const std::optional<LayerOfModel> layer = layer_of_modules(words);
    if (layer && !label.layer) {
        label.layer = layer_number(std::to_string(layer->number));
    }
    const ModuleRule* rule = module_rule(words);
    label.name = as_name(rule != nullptr && rule->decides ? rule->bricks.front() : words.back());
    const bool is_number =
        std::all_of(words.back().begin(), words.back().end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
    if (is_number && layer_number(words.back()) == label.layer && label.layer) {
        label.kind = RangeKind::layer;
    }
}

} // namespace

struct RangeRules::State : Rules {
    RegexMatcher matcher;

    [[nodiscard]] std::string_view group(const RangeRule& rule, Group wanted) const {
        const std::uint8_t at = rule.group_at[static_cast<std::size_t>(wanted)];
        return at != 0 ? matcher.group(at) : std::string_view();
    }
    /// Tokens and sequences of a step, and the phase that they make.
    void read_step(const RangeRule& rule, RangeLabel& label) const {
        if (const std::optional<StepName> read = read_step_name(group(rule, Group::engine))) {
            label.phase = read->phase;
            label.step = read->values;
            return;
        }
        const auto of = [&](Group wanted) {
            return number(group(rule, wanted));
        };
        const std::uint64_t filled = of(Group::prefill_sequences);
        const std::uint64_t decoding = of(Group::decode_sequences);
        label.step = {of(Group::prefill), of(Group::decode), std::max(of(Group::sequences), filled + decoding),
                      of(Group::kv_length)};
        const bool fills = label.step.prefill_tokens != 0 || filled != 0;
        const bool decodes = label.step.decode_tokens != 0 || decoding != 0;
        label.phase = rule.phase != Phase::none ? rule.phase
                      : fills && decodes        ? Phase::mixed
                      : fills                   ? Phase::prefill
                      : decodes                 ? Phase::decode
                                                : Phase::none;
    }
    /// Of a product of two matrices, whose sizes the name holds.
    [[nodiscard]] double read_flops(const RangeRule& rule) const {
        const std::string_view batch = group(rule, Group::b);
        const double flops = 2.0 * static_cast<double>(number(group(rule, Group::m))) *
                             static_cast<double>(number(group(rule, Group::k))) *
                             static_cast<double>(number(group(rule, Group::n)));
        return flops == 0 ? std::numeric_limits<double>::quiet_NaN()
                          : flops * (batch.empty() ? 1.0 : static_cast<double>(number(batch)));
    }
    [[nodiscard]] RangeLabel label_by(const RangeRule& rule, std::string_view text) const {
        RangeLabel label;
        label.kind = rule.kind;
        label.by_rule = true;
        label.payload = rule.payload;
        label.layer = layer_number(group(rule, Group::layer));
        label.flops = read_flops(rule);
        label.name = rule.name;
        if (rule.naming == Naming::by_module) {
            name_by_module(group(rule, Group::module), label);
        } else if (rule.naming != Naming::fixed || rule.kind != RangeKind::brick) {
            const std::string_view named = group(rule, Group::brick);
            label.name = as_name(named.empty() ? text : named);
        }
        if (rule.kind == RangeKind::layer && !label.layer && rule.payload != RangePayload::layer) {
            label.kind = RangeKind::brick;
        }
        if (rule.kind == RangeKind::step) {
            read_step(rule, label);
        }
        return label;
    }
};

RangeRules::RangeRules(std::unique_ptr<State> state) : state_(std::move(state)) {}
RangeRules::RangeRules(RangeRules&&) noexcept = default;
RangeRules& RangeRules::operator=(RangeRules&&) noexcept = default;
RangeRules::~RangeRules() = default;

Result<RangeRules> RangeRules::load(const std::vector<std::string>& files, const std::string& installed) {
    std::vector<std::string> all = files;
    if (!installed.empty()) {
        all.push_back(installed);
    }
    std::vector<RulesText> sources;
    for (const std::string& file : all) {
        Result<RulesText> source = read_rules_text(file);
        if (!source) {
            return source.error();
        }
        sources.push_back(std::move(*source));
    }
    if (installed.empty()) {
        sources.push_back({"nvtx.rules", std::string(built_in_range_rules())});
    }
    return compile(sources);
}

Result<RangeRules> RangeRules::compile(const std::vector<RulesText>& sources) {
    auto state = std::make_unique<State>();
    if (!state->matcher.usable()) {
        return Error{ErrorCode::out_of_memory, "there is no memory for the rules of ranges"};
    }
    for (const RulesText& source : sources) {
        const Status read = each_rule(source.text, source.file, [&](std::size_t line, std::string_view text) {
            return read_line(text, source.file, line, *state);
        });
        if (!read.ok()) {
            return read.error();
        }
    }
    return RangeRules(std::move(state));
}

std::string_view RangeRules::key(std::string_view text, std::string& place) const {
    bool copied = false;
    for (const Skip& skip : state_->skips) {
        const std::size_t at = text.find(skip.word);
        if (at == text.npos) {
            continue;
        }
        const std::size_t from = at + skip.word.size();
        if (skip.to_the_end) {
            text = text.substr(0, at);
            continue;
        }
        const std::size_t to = std::min(text.find_first_not_of("0123456789", from), text.size());
        if (!copied) {
            place.assign(text);
            copied = true;
        } else {
            place.resize(text.size()); // what was cut
        }
        place.erase(from, to - from);
        text = place;
    }
    return text;
}

RangeLabel RangeRules::label(std::string_view domain, std::string_view key) {
    for (const RangeRule& rule : state_->rules) {
        const bool of_domain = rule.domain == "*" || (rule.domain == "-" ? domain.empty() : rule.domain == domain);
        if (of_domain && state_->matcher.matches(*rule.regex, key)) {
            return state_->label_by(rule, key);
        }
    }
    RangeLabel label;
    label.name = domain.empty() ? as_name(key) : as_name(std::string(domain) + ':' + std::string(key));
    return label;
}

std::size_t RangeRules::given_up() const noexcept { return state_->matcher.given_up(); }

} // namespace plumb::imported
