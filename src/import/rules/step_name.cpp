// SPDX-License-Identifier: Apache-2.0
#include "import/rules/step_name.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace plumb::imported {
namespace {

/// "12" of "12_context"; moves behind it.
std::optional<std::uint64_t> take_number(std::string_view& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return error == std::errc() ? std::optional(value) : std::nullopt;
}

/// "…key12…": 12; `text` is what stands behind it.
std::uint64_t number_after(std::string_view& text, std::string_view key) {
    const std::size_t at = text.find(key);
    text.remove_prefix(at == text.npos ? text.size() : at + key.size());
    return take_number(text).value_or(0);
}

/// "(512)…": 512.
std::optional<std::uint64_t> in_parentheses(std::string_view text) {
    if (!text.starts_with('(')) {
        return std::nullopt;
    }
    text.remove_prefix(1);
    const std::optional<std::uint64_t> value = take_number(text);
    return text.starts_with(')') ? value : std::nullopt;
}

StepName read_execute(std::string_view rest) {
    StepName read;
    const std::uint64_t tokens = take_number(rest).value_or(0);
    const std::uint64_t context = number_after(rest, "context_");
    const std::optional<std::uint64_t> context_tokens = in_parentheses(rest);
    const std::uint64_t generation = number_after(rest, "generation_");
    if (context + generation == 0) {
        return read;
    }
    read.phase = context == 0 ? Phase::decode : generation == 0 ? Phase::prefill : Phase::mixed;
    read.values.sequences = context + generation;
    const std::uint64_t decoded = in_parentheses(rest).value_or(generation);
    read.values.decode_tokens = generation != 0 ? decoded : 0;
    if (context != 0) {
        read.values.prefill_tokens = context_tokens.value_or(tokens > decoded ? tokens - decoded : 0);
    }
    return read;
}

StepName read_step(std::string_view rest) {
    StepName read;
    const bool decodes = rest.find("DECODE") != rest.npos;
    const bool fills = rest.find("EXTEND") != rest.npos || rest.find("PREFILL") != rest.npos;
    read.phase = decodes ? Phase::decode : fills ? Phase::prefill : Phase::none;
    read.values.sequences = number_after(rest, "bs=");
    if (decodes) {
        read.values.decode_tokens = read.values.sequences;
    } else if (fills) {
        read.values.prefill_tokens = number_after(rest, "toks=");
    }
    return read;
}

} // namespace

std::optional<StepName> read_step_name(std::string_view name) {
    for (const auto& [word, read] : {std::pair{std::string_view("execute_"), &read_execute}, {"step[", &read_step}}) {
        if (name.starts_with(word)) {
            return read(name.substr(word.size()));
        }
    }
    return std::nullopt;
}

} // namespace plumb::imported
