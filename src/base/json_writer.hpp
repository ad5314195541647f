// SPDX-License-Identifier: Apache-2.0
// Writes JSON that is always valid: control characters are escaped, broken UTF-8 is replaced, NaN and infinity are null,
// and a misplaced call cannot unbalance the text. Appends to a string that the caller owns and may drain at any time.
// Used by one thread at a time.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace plumb::base {

/// `text` in quotes.
void append_json_string(std::string& out, std::string_view text);
/// The shortest form that reads back as the same value; null where it is not finite.
void append_json_number(std::string& out, double value);

template <std::integral T>
void append_integer(std::string& out, T value) {
    char digits[24];
    const auto written = std::to_chars(digits, digits + sizeof(digits), value);
    out.append(digits, static_cast<std::size_t>(written.ptr - digits));
}

/// Values at the top level are separated by newlines (JSON Lines). `indent` blanks per depth; 0 writes one line.
class JsonWriter {
  public:
    explicit JsonWriter(std::string& out, unsigned indent = 0) : out_(out), indent_(indent) {}

    void begin_object() { begin('{', '}'); }
    void begin_array() { begin('[', ']'); }
    /// Closes the innermost object or array; nothing where none is open.
    void end();
    /// Closes everything that is open.
    void finish();

    /// Names the next value. A key without a value gets null; a value in an object without a key gets the key "".
    void key(std::string_view name);

    void value(std::string_view text);
    void value(const char* text) { value(std::string_view(text)); }
    void value(double number);
    void value(bool truth);
    template <std::integral T>
    void value(T number) {
        before_value();
        append_integer(out_, number);
    }
    void null();
    /// A document that was written before, as a value.
    void document(std::string_view json);

    template <class T>
    void field(std::string_view name, const T& content) {
        key(name);
        value(content);
    }

  private:
    struct Level {
        char close;
        bool empty;
    };
    void begin(char open, char close);
    void before_value();
    void separate();
    void new_line();
    [[nodiscard]] bool in_object() const { return !levels_.empty() && levels_.back().close == '}'; }

    std::string& out_;
    unsigned indent_;
    bool has_key_ = false;
    bool any_value_ = false; // at the top level
    std::vector<Level> levels_;
};

} // namespace plumb::base
