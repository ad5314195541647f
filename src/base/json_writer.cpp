// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.hpp"

#include <cmath>

#include "base/utf8.hpp"

namespace plumb::base {

namespace {

constexpr char hex_digits[] = "0123456789abcdef";

bool is_plain(unsigned char byte) noexcept { return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\'; }

void append_escape(std::string& out, unsigned char byte) {
    switch (byte) {
    case '"':
        out += "\\\"";
        return;
    case '\\':
        out += "\\\\";
        return;
    case '\n':
        out += "\\n";
        return;
    case '\t':
        out += "\\t";
        return;
    case '\r':
        out += "\\r";
        return;
    default:
        out += "\\u00";
        out += hex_digits[byte >> 4];
        out += hex_digits[byte & 15];
    }
}

} // namespace

void append_json_string(std::string& out, std::string_view text) {
    out += '"';
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t plain = at;
        while (plain < text.size() && is_plain(static_cast<unsigned char>(text[plain]))) {
            ++plain;
        }
        out.append(text, at, plain - at);
        at = plain;
        if (at == text.size()) {
            break;
        }
        const auto byte = static_cast<unsigned char>(text[at]);
        if (byte < 0x80) {
            append_escape(out, byte);
            ++at;
        } else if (const std::size_t length = utf8_sequence(text, at); length != 0) {
            out.append(text, at, length);
            at += length;
        } else {
            out += replacement_character;
            ++at;
        }
    }
    out += '"';
}

void append_json_number(std::string& out, double value) {
    if (!std::isfinite(value)) {
        out += "null";
        return;
    }
    constexpr double exact = 9007199254740992.0; // 2^53: below it an integer is printed as one, without an exponent
    if (std::fabs(value) < exact && value == std::floor(value)) {
        append_integer(out, static_cast<long long>(value));
        return;
    }
    char digits[32];
    const auto written = std::to_chars(digits, digits + sizeof(digits), value);
    out.append(digits, static_cast<std::size_t>(written.ptr - digits));
}

void JsonWriter::new_line() {
    if (indent_ != 0) {
        out_ += '\n';
        out_.append(levels_.size() * indent_, ' ');
    }
}

void JsonWriter::separate() {
    if (levels_.empty()) {
        if (any_value_) {
            out_ += '\n';
        }
        any_value_ = true;
        return;
    }
    if (!levels_.back().empty) {
        out_ += ',';
    }
    levels_.back().empty = false;
    new_line();
}

void JsonWriter::key(std::string_view name) {
    if (!in_object()) {
        return;
    }
    if (has_key_) {
        null();
    }
    separate();
    append_json_string(out_, name);
    out_ += indent_ != 0 ? ": " : ":";
    has_key_ = true;
}

void JsonWriter::before_value() {
    if (in_object()) {
        if (!has_key_) {
            key("");
        }
        has_key_ = false;
    } else {
        separate();
    }
}

void JsonWriter::begin(char open, char close) {
    before_value();
    out_ += open;
    levels_.push_back({close, true});
}

void JsonWriter::end() {
    if (levels_.empty()) {
        return;
    }
    if (has_key_) {
        null();
    }
    const Level level = levels_.back();
    levels_.pop_back();
    if (!level.empty) {
        new_line();
    }
    out_ += level.close;
}

void JsonWriter::finish() {
    while (!levels_.empty()) {
        end();
    }
}

void JsonWriter::value(std::string_view text) {
    before_value();
    append_json_string(out_, text);
}

void JsonWriter::value(double number) {
    before_value();
    append_json_number(out_, number);
}

void JsonWriter::value(bool truth) {
    before_value();
    out_ += truth ? "true" : "false";
}

void JsonWriter::document(std::string_view json) {
    before_value();
    for (const char c : json.substr(0, json.find_last_not_of('\n') + 1)) {
        out_ += c;
        if (c == '\n') {
            out_.append(indent_ * levels_.size(), ' ');
        }
    }
}

void JsonWriter::null() {
    before_value();
    out_ += "null";
}

} // namespace plumb::base
