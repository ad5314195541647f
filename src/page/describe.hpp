// SPDX-License-Identifier: Apache-2.0
// One description of a struct drives its JSON, its JSON Schema, its reference table and its options on a command line.
//
//     template <class V> void describe(V& v, const Thing& t) {
//         v.type("thing", "one sentence");
//         v("name", t.name, "what it is");
//         v("layer", t.layer, "std::optional: written where it has a value");
//         v("reason", t.reason, "why", t.undecided);             // a fourth argument: written only where it is true
//         v.group("device", "what only devices have", t.device, [&](auto& v) { v("busy_ns", t.busy_ns, "…"); });
//         v.pairs("kernels", "kernel", "count", t.kernels, "…"); // a list of {kernel, count}
//         v.or_null("host", t.host, "std::optional: null where it has no value");
//         v("share", limited(t.share, {.above = 0, .most = 1}), "what a schema says beyond the type");
//     }
//
// A value is a bool, a number, text, a Word, an enumeration with words_of(), a Figure, an optional or a vector of those, or a struct with a
// description of its own. Fields stand in the order in which JSON has them. This file holds what writes JSON. A visitor
// belongs to the function that makes it; no thread rule.
#pragma once

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json_writer.hpp"
#include "page/words.hpp"
#include "plumb/figure.hpp"

namespace plumb::page {

/// A number that need not be finite, as a figure whose reason says which.
inline Figure number(double value) {
    return std::isfinite(value) ? Figure{value, {}}
                                : Figure{std::nullopt, std::isnan(value) ? "NaN"
                                                       : value < 0       ? "-Inf"
                                                                         : "Inf"};
}

/// A document of its own inside another, as JSON.
struct Nested {
    std::string json;
};

/// Text that is one of some words.
struct Word {
    std::string_view text;
    Words words;
};

/// What values may be.
struct Limits {
    std::optional<double> above{}, least{}, most{};
    const char* pattern = ""; // of text: a regular expression
};
template <class T>
struct Limited {
    const T& value;
    Limits limits;
};
template <class T>
[[nodiscard]] Limited<T> limited(const T& value, const Limits& limits) {
    return {value, limits};
}

template <class T>
inline constexpr bool is_limited = false;
template <class T>
inline constexpr bool is_limited<Limited<T>> = true;
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
concept Text = std::convertible_to<const T&, std::string_view>;

/// Writes what is described as JSON.
class JsonFields {
  public:
    explicit JsonFields(base::JsonWriter& json) : json_(json) {}

    void type(const char*, const char*) {}
    template <class T>
    void operator()(const char* name, const T& value, const char* sentence) {
        if constexpr (is_limited<T>) {
            (*this)(name, value.value, sentence);
        } else if constexpr (is_optional<T>) {
            if (value) {
                field(name, *value);
            }
        } else {
            field(name, value);
        }
    }
    template <class T>
    void operator()(const char* name, const T& value, const char* sentence, bool present) {
        if (present) {
            (*this)(name, value, sentence);
        }
    }
    template <class T>
    void or_null(const char* name, const std::optional<T>& value, const char*) {
        field(name, value);
    }
    template <class Fields>
    void group(const char* name, const char*, bool present, Fields&& fields) {
        if (present) {
            json_.key(name);
            json_.begin_object();
            fields(*this);
            json_.end();
        }
    }
    template <class Fields>
    void group(const char* name, const char* sentence, Fields&& fields) {
        group(name, sentence, true, fields);
    }
    template <class B>
    void pairs(const char* name, const char* first, const char* second,
               const std::vector<std::pair<std::string, B>>& list, const char*) {
        json_.key(name);
        json_.begin_array();
        for (const auto& [a, b] : list) {
            json_.begin_object();
            json_.field(first, a);
            json_.field(second, b);
            json_.end();
        }
        json_.end();
    }
    /// An object whose keys are data.
    void map(const char* name, const std::vector<std::pair<std::string, std::string>>& list, const char*) {
        json_.key(name);
        json_.begin_object();
        for (const auto& [key, value] : list) {
            json_.field(key, value);
        }
        json_.end();
    }

  private:
    template <class T>
    void field(const char* name, const T& value) {
        json_.key(name);
        put(value);
    }
    template <class T>
    void put(const T& value) {
        if constexpr (std::same_as<T, Figure>) {
            if (value.value) {
                json_.value(*value.value);
            } else {
                json_.begin_object();
                json_.field("absent", value.reason);
                json_.end();
            }
        } else if constexpr (std::same_as<T, Nested>) {
            json_.document(value.json);
        } else if constexpr (is_optional<T>) {
            value ? put(*value) : json_.null();
        } else if constexpr (is_vector<T>) {
            json_.begin_array();
            for (const auto& item : value) {
                put(item);
            }
            json_.end();
        } else if constexpr (Worded<T>) {
            json_.value(word_of(value));
        } else if constexpr (std::same_as<T, Word>) {
            json_.value(value.text);
        } else if constexpr (std::is_arithmetic_v<T>) {
            json_.value(value);
        } else if constexpr (Text<T>) {
            json_.value(std::string_view(value));
        } else {
            json_.begin_object();
            describe(*this, value);
            json_.end();
        }
    }

    base::JsonWriter& json_;
};

/// One document: an object whose first field is the schema.
template <class T>
[[nodiscard]] std::string json_of(const char* schema, const T& value, unsigned indent) {
    std::string out;
    base::JsonWriter json(out, indent);
    JsonFields fields(json);
    json.begin_object();
    json.field("schema", schema);
    describe(fields, value);
    json.finish();
    out += '\n';
    return out;
}

} // namespace plumb::page
