// SPDX-License-Identifier: Apache-2.0
// The words by which outputs name the values of an enumeration. An enumeration has an overload of words_of() beside it, found by
// its argument; the words stand in the order of the values. Pure constants; no thread rule.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "plumb/bricks.hpp"
#include "plumb/outcome.hpp"

namespace plumb {

using Words = std::span<const char* const>;

inline Words words_of(Phase) {
    static constexpr const char* words[] = {"none", "prefill", "decode", "mixed"};
    return words;
}
inline Words words_of(Category) {
    static constexpr const char* words[] = {"other",     "norm",   "attention", "ffn",        "moe",
                                            "embedding", "output", "cache",     "collective", "transfer"};
    return words;
}
inline Words words_of(Outcome) {
    static constexpr const char* words[] = {"pass", "fail", "unknown"};
    return words;
}

namespace page {

template <class E>
concept Worded = std::is_enum_v<E> && requires(E value) {
    { words_of(value) } -> std::convertible_to<Words>;
};

template <Worded E>
const char* word_of(E value) {
    const Words words = words_of(value);
    const auto index = static_cast<std::size_t>(value);
    return words[index < words.size() ? index : 0];
}

/// An empty word stands for a number that no value has.
template <Worded E>
std::vector<const char*> all_words_of() {
    std::vector<const char*> all;
    for (const char* word : words_of(E{})) {
        if (*word != '\0') {
            all.push_back(word);
        }
    }
    return all;
}

template <Worded E>
std::optional<E> value_of(std::string_view word) {
    const Words words = words_of(E{});
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (word == words[i] && !word.empty()) {
            return static_cast<E>(i);
        }
    }
    return std::nullopt;
}

} // namespace page
} // namespace plumb
