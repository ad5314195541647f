// SPDX-License-Identifier: Apache-2.0
// Reads small JSON files that we wrote ourselves: objects, arrays, texts and numbers, in the order of the reader's
// questions. Whatever does not fit sets a flag that stays; nothing recurses. Owned by one reader; the text must outlive it.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace plumb::session {

class FlatJson {
  public:
    explicit FlatJson(std::string_view text) : rest_(text) {}

    [[nodiscard]] bool good() const { return good_; }
    [[nodiscard]] bool at_end() {
        skip_blanks();
        return good_ && rest_.empty();
    }
    /// The next sign that is no blank is this one; it is taken.
    void expect(char sign) {
        if (!take(sign)) {
            good_ = false;
        }
    }
    [[nodiscard]] bool take(char sign) {
        skip_blanks();
        if (!good_ || rest_.empty() || rest_.front() != sign) {
            return false;
        }
        rest_.remove_prefix(1);
        return true;
    }
    /// Between the members of an object or array: false at its end, which is taken too.
    [[nodiscard]] bool more(bool& first, char end) {
        if (take(end)) {
            return false;
        }
        if (!first) {
            expect(',');
        }
        first = false;
        return good_;
    }
    [[nodiscard]] std::string text() {
        std::string result;
        expect('"');
        while (good_) {
            if (rest_.empty()) {
                good_ = false;
            } else if (take_raw('"')) {
                return result;
            } else if (take_raw('\\')) {
                result += escaped();
            } else {
                result += rest_.front();
                rest_.remove_prefix(1);
            }
        }
        return result;
    }
    [[nodiscard]] std::string key() {
        std::string name = text();
        expect(':');
        return name;
    }
    [[nodiscard]] double number() {
        skip_blanks();
        double value = 0;
        const auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
        if (failed != std::errc{} || !std::isfinite(value)) {
            good_ = false;
            return 0;
        }
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }
    [[nodiscard]] bool next_is(char sign) {
        skip_blanks();
        return good_ && !rest_.empty() && rest_.front() == sign;
    }

  private:
    void skip_blanks() {
        while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) {
            rest_.remove_prefix(1);
        }
    }
    bool take_raw(char sign) {
        if (rest_.front() != sign) {
            return false;
        }
        rest_.remove_prefix(1);
        return true;
    }
    /// What our writer escapes: quotes, backslashes, and control characters, of which none belongs into a name.
    char escaped() {
        const char sign = rest_.empty() ? '\0' : rest_.front();
        if (sign != '"' && sign != '\\' && sign != '/') {
            good_ = false;
            return '?';
        }
        rest_.remove_prefix(1);
        return sign;
    }

    std::string_view rest_;
    bool good_ = true;
};

} // namespace plumb::session
