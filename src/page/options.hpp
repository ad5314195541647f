// SPDX-License-Identifier: Apache-2.0
// The options of an answer, from the description of its options struct: a list for command lines, help and completion, and values
// put into the struct. A field is a bool (a flag), an unsigned or floating number, text, an enumeration with words_of(), an
// optional of those, or a vector of text (repeated). Visitors belong to the function that makes them; no thread rule.
#pragma once

#include <charconv>
#include <string>
#include <vector>

#include "page/describe.hpp"
#include "plumb/answer.hpp"

namespace plumb::page {

/// The phases that steps have.
inline constexpr const char* step_phases[] = {"decode", "prefill", "mixed"};

/// "mean, p50 or p90".
[[nodiscard]] std::string listed(Words words);

/// What a description may add to an option.
struct Hints {
    const char* value = "";
    Words choices = {};        // fewer than the words of its type, or another order
    bool several = false;      // --base A B C
    std::uint64_t most = 0;    // of a count
    const char* excludes = ""; // names, separated by blanks
    bool json = false;         // it asks for a document in JSON
};

/// Collects AnswerOption for each field.
class OptionList {
  public:
    template <class T>
    void operator()(const char* name, const T& value, const char* sentence, const Hints& hints = {}) {
        AnswerOption option;
        option.name = name;
        option.meaning = sentence;
        option.value = hints.value;
        option.several = hints.several;
        option.most = hints.most;
        option.json = hints.json;
        option.choices.assign(hints.choices.begin(), hints.choices.end());
        for (std::string_view rest = hints.excludes; !rest.empty();) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            option.excludes.emplace_back(rest.substr(0, end));
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
        set_kind<T>(option);
        set_initial(option, value);
        options.push_back(std::move(option));
    }

    std::vector<AnswerOption> options;

  private:
    template <class T>
    static void set_kind(AnswerOption& option) {
        if constexpr (is_optional<T>) {
            set_kind<typename T::value_type>(option);
        } else if constexpr (is_vector<T>) {
            option.kind = AnswerOption::Kind::text;
            option.repeated = true;
        } else if constexpr (std::same_as<T, bool>) {
            option.kind = AnswerOption::Kind::flag;
        } else if constexpr (Worded<T>) {
            option.kind = AnswerOption::Kind::text;
            if (option.choices.empty()) {
                const std::vector<const char*> words = all_words_of<T>();
                option.choices.assign(words.begin(), words.end());
            }
        } else if constexpr (std::integral<T>) {
            option.kind = AnswerOption::Kind::count;
        } else {
            option.kind = std::floating_point<T> ? AnswerOption::Kind::number : AnswerOption::Kind::text;
        }
    }
    template <class T>
    static void set_initial(AnswerOption& option, const T& value) {
        if constexpr (Worded<T>) {
            option.initial = word_of(value);
        } else if constexpr (std::is_arithmetic_v<T> && !std::same_as<T, bool>) {
            base::append_json_number(option.initial, static_cast<double>(value));
        }
    }
};

/// Puts values into the struct. The first thing that does not fit is kept as an error.
class OptionReader {
  public:
    explicit OptionReader(const OptionValues& values) : values_(values) {}

    template <class T>
    void operator()(const char* name, T& into, const char*, const Hints& hints = {}) {
        for (const auto& [key, text] : values_) {
            if (key == name && error_.message.empty()) {
                read(name, text, into, hints);
            }
        }
    }
    [[nodiscard]] Status status() const { return error_.message.empty() ? Status{} : Status{error_}; }

  private:
    template <class T>
    void read(const char* name, const std::string& text, T& into, const Hints& hints) {
        if constexpr (is_optional<T>) {
            into.emplace();
            read(name, text, *into, hints);
        } else if constexpr (is_vector<T>) {
            into.push_back(text);
        } else if constexpr (std::same_as<T, bool>) {
            into = true;
        } else if constexpr (Worded<T>) {
            const std::optional<T> value = value_of<T>(text);
            value ? void(into = *value)
                  : refuse(name, text, listed(hints.choices.empty() ? words_of(T{}) : hints.choices));
        } else if constexpr (std::is_arithmetic_v<T>) {
            const char* end = text.data() + text.size();
            const auto [stop, error] = std::from_chars(text.data(), end, into);
            if (error != std::errc() || stop != end || text.empty()) {
                refuse(name, text, std::integral<T> ? "a whole number from 0 on" : "a number");
            } else if (hints.most != 0 && into > static_cast<T>(hints.most)) {
                refuse(name, text, "at most " + std::to_string(hints.most));
            }
        } else {
            into = text;
        }
    }
    void refuse(const std::string& name, const std::string& text, const std::string& wanted) {
        error_ = {ErrorCode::invalid_argument, "the option " + name + " takes " + wanted + ", not \"" + text + "\""};
    }

    const OptionValues& values_;
    Error error_{};
};

} // namespace plumb::page
